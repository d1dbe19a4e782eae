"""Which tables and indexes deserve which device: the best sets by size, each predicted as a whole."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tierwise.advise.costs import (
    DeviceBill,
    PaymentTerms,
    PlacementCosts,
    PriceSource,
    price_sources,
)
from tierwise.advise.priced_placement import MARGIN, is_sure_gain, monthly_cost_limits
from tierwise.advise.search import predict_staying
from tierwise.advise.wear import DeviceWear, device_wear
from tierwise.device_models.instances import instance_rent_per_month
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key, join_words
from tierwise.model.placement import Role
from tierwise.model.units import MOST_BYTES
from tierwise.predict import Estimate, Prediction, Predictor, Scenario, resolve_device
from tierwise.predict.named_devices import roles_lost_at_stop
from tierwise.predict.time_savings import NO_TIME
from tierwise.recording.relations import Relations, RelationTraffic
from tierwise.results.measurements import StrictModel

MOST_SETS = 6
"""Sets that are predicted, besides the largest: each is a recording of its own to the simulator."""
MOST_ALONE = 8
"""Tables and indexes that are also predicted alone, where that is asked for."""
Places = tuple[int, ...]
"""Tables and indexes by their places among those that were used."""
_STEP = 1.01
"""Value of a set over that of the next smaller one from which on both are predicted."""
_MOST_COMBINATIONS = 20_000
"""Of partial sets up to which the search is exact; beyond it, they are thinned evenly."""


@dataclass(frozen=True)
class TableSetPlan:
    """The questions about one device: sets of places among the used tables, by size, and single ones."""

    sets: list[Places]
    alone: list[Places]


def plan_table_sets(relations: Relations, most_bytes: float, alone: bool) -> TableSetPlan:
    """The questions about a device with some space, and about single tables if these are asked ``alone``.

    Args:
        relations: tables and indexes of the recording.
        most_bytes: of recorded files that may go to the device.
        alone: whether to ask about single ones too.
    """
    sizes, values = [row.size_bytes for row in relations.used], _values(relations)
    fitting = [place for place, size in enumerate(sizes) if size <= most_bytes]
    fronts = pareto_sets([(sizes[place], values[place]) for place in fitting], most_bytes)
    sets = [tuple(sorted(fitting[place] for place in front)) for front in fronts]
    chosen = _spread(_distinct(sets, values))
    chosen.sort(key=lambda places: sum(sizes[place] for place in places))
    return TableSetPlan(chosen, [(place,) for place in fitting[:MOST_ALONE]] if alone else [])


def pareto_sets(items: Sequence[tuple[int, float]], capacity: float | None) -> list[Places]:
    """The sets of items that no other set of at most their size surpasses in value, smallest first.

    Args:
        items: size and value of each, both at least 0.
        capacity: largest size of a set; ``None`` for no limit.
    """
    kept: list[tuple[int, float, Places]] = [(0, 0.0, ())]
    for place, (size, value) in enumerate(items):
        more = [(subset[0] + size, subset[1] + value, (*subset[2], place)) for subset in kept]
        both = sorted(
            kept + [subset for subset in more if capacity is None or subset[0] <= capacity],
            key=lambda subset: (subset[0], -subset[1]),
        )
        kept = []
        for subset in both:
            if not kept or subset[1] > kept[-1][1]:
                kept.append(subset)
        kept = kept[:: -(-len(kept) // _MOST_COMBINATIONS)]
    return [places for _, _, places in kept if places]


def _values(relations: Relations) -> list[float]:
    """The value of each used table or index, in seconds of sessions' waits."""
    waited_s = sum(row.waited_s for row in relations.used)
    device_s = sum(row.device_s for row in relations.used) or 1.0
    return [row.waited_s + row.device_s / device_s * (waited_s - row.waited_s) for row in relations.used]


def _distinct(sets: Sequence[Places], values: Sequence[float]) -> list[Places]:
    """Sets that are worth ``_STEP`` more than a smaller one, and the last."""
    kept: list[Places] = []
    most = 0.0
    for places in sets:
        worth = sum(values[place] for place in places)
        if worth > _STEP * most:
            kept, most = [*kept, places], worth
    return kept if not sets or kept[-1] == sets[-1] else [*kept, sets[-1]]


def _spread(sets: Sequence[Places]) -> list[Places]:
    """At most ``MOST_SETS`` of the sets and the last, evenly over the front."""
    if len(sets) <= MOST_SETS:
        return list(sets)
    places = {round(number * (len(sets) - 1) / MOST_SETS) for number in range(MOST_SETS + 1)}
    return [sets[place] for place in sorted(places)]


ENOUGH = 0.9
"""Share of the highest gain of a set from which on a smaller one is recommended."""


class TableUsage(StrictModel):
    """What one table with its TOAST, or one index, was asked for."""

    name: str
    kind: str
    """``table``, ``index`` or ``materialized view``."""
    size_bytes: int
    reads: int
    """Requests to its device."""
    writes: int
    """The same."""
    wait_share: float
    """Share of the time that sessions waited for all tables and indexes."""
    at_most: Estimate | None
    """Rate if its device took no time, over that as recorded; ``None`` where that was not simulated."""


class TableSet(StrictModel):
    """Some tables and indexes on the new device, and all else where it was recorded."""

    names: list[str]
    """The tables and indexes, those that were waited for longest first."""
    patterns: list[str]
    """The same as a scenario names them, such as ``table:public.orders``."""
    databases: list[str]
    """The database of each; empty if it is the one that the recording's DSN names."""
    size_bytes: int
    prediction: Prediction
    gain_per_s: float | None
    """More transactions a second than as recorded; ``None`` if it is refused."""
    bill: DeviceBill
    """What the device costs a month with these files; a drive wears at the recorded rate of writes."""
    gain_per_cost: float | None
    """More transactions a second for each unit of the currency a month; ``None`` for a device that costs
    nothing."""
    wear: DeviceWear | None
    """Of the device; ``None`` if the set is refused."""

    @property
    def gain(self) -> float:
        """Rate over that of the recorded run, less 1; 0 if it is refused."""
        return self.prediction.speedup.value - 1 if self.prediction.speedup else 0.0

    def costs_at_most(self, budget_per_month: float | None) -> bool:
        """Whether the device, with its wear, is within a budget."""
        return budget_per_month is None or self.bill.per_month <= budget_per_month


class DeviceTableSets(StrictModel):
    """The sets for one device, smallest first, and the recommended one."""

    device: str
    sets: list[TableSet]
    """Empty if no table that was used fits the device."""
    best: int | None
    """Index of the recommended set; ``None``: leave all where they are."""
    lost_at_stop: bool = False
    """Whether a stop of the machine, or of its power, loses the files on it."""
    alone: list[TableSet] = []
    """Tables and indexes of which nothing else moves, those that were waited for longest first."""

    @property
    def recommended(self) -> TableSet | None:
        """The recommended set, if there is one."""
        return None if self.best is None else self.sets[self.best]


class TableAdvice(StrictModel):
    """The sets of tables and indexes worth a device, for each device."""

    capacity_bytes: int | None
    """Space for tables on the device; ``None`` for all of the device."""
    budget_per_month: float | None
    """Most that the device may cost; ``None`` for no limit but what the gain is worth."""
    currency: str
    """Of every amount: a code of ISO 4217, such as ``USD``."""
    total_bytes: int
    """Of all named tables and indexes."""
    rows: list[TableUsage]
    """Those that were used, those that were waited for longest first."""
    rebuildable: bool = False
    """Whether the database can be rebuilt; if not, memory and instance stores hold no table."""
    devices: list[DeviceTableSets]
    """The best first: devices whose recommended set is as fast as the fastest that is worth its price, the
    cheapest of them first; then by the gain; then those that gain nothing."""
    prices: list[PriceSource]
    """Source and date of the price of each device that is not owned."""
    warnings: list[str]


def advise_tables(
    predictor: Predictor,
    devices: Sequence[str],
    terms: PaymentTerms | None = None,
    capacity_bytes: int | None = None,
    *,
    budget_per_month: float | None = None,
    alone: bool = False,
    machine: Scenario | None = None,
) -> TableAdvice:
    """Find the tables and indexes to move to a device, for each of some devices.

    A table's value is the time that sessions waited for its files, and the part of their waits for others
    that its requests caused, by their share of the device's time. It chooses sets only: their rates are
    simulated, with the interactions. The best set of each size is exact for these values (a knapsack by
    dominance; Nemhauser and Ullmann, 1969).

    Args:
        predictor: of the recording.
        devices: names; each is asked about by itself.
        terms: of payment; the prices that ship, and nothing owned, if not given.
        capacity_bytes: space on the device.
        budget_per_month: most that the device may cost with the files of a set; no limit if not given.
        alone: whether to predict the ``MOST_ALONE`` most used ones alone too, and what each gains at most.
        machine: what else changes for all of them, as the limits of their machine; nothing if not given.

    Raises:
        TierwiseError: an observation; no table has a name, was used, or fits a device that may hold it; an
            unknown device, or one without a price.
    """
    relations = predictor.relations
    if relations is None:
        raise TierwiseError("an observation does not tell tables apart", "record with tierwise record")
    relations.require_names()
    if not relations.used:
        why = "no table or index was read or written while the database was recorded"
        raise TierwiseError(why, "record under load")
    terms = terms or PaymentTerms()
    costs = PlacementCosts.of(predictor, terms)
    names = list(dict.fromkeys(resolve_device(name).name for name in devices))
    volatile = {name for name in names if roles_lost_at_stop({Role.SELECTED: name})}
    allowed = [name for name in names if costs.may_hold({Role.SELECTED: name})]
    if not allowed:
        raise TierwiseError(
            f"a stop of the machine takes all files on {join_words(names)}",
            "name another device, or add --rebuildable if the database can be rebuilt, as a replica can",
        )
    plans = {name: TableSetPlan([], []) for name in names}
    for name in allowed:
        space_bytes = _space_for_files(costs, name, terms, capacity_bytes)
        if budget_per_month is not None:
            space_bytes = _within_budget(costs, name, space_bytes, budget_per_month)
        plans[name] = plan_table_sets(relations, space_bytes, alone)
    if budget_per_month is None and not any(plan.sets for plan in plans.values()):
        raise TierwiseError("no table or index that was used fits the device", "give a larger --capacity")
    machine = machine or Scenario()
    own = [machine.instance] if machine.instance else []
    rent = instance_rent_per_month(own, predictor.work.cores, costs.currency)
    recorded = predict_staying(predictor, machine)
    asked = _asked(predictor, relations, costs, plans, machine, recorded)
    answers = [
        DeviceTableSets(
            device=name,
            sets=(
                sets := [
                    each
                    for places in plan.sets
                    if (each := asked.sets[places, name]).costs_at_most(budget_per_month)
                ]
            ),
            best=_recommended_set(sets, recorded),
            lost_at_stop=name in volatile,
            alone=[asked.sets[places, name] for places in plan.alone],
        )
        for name, plan in plans.items()
    ]
    waited_s = sum(row.waited_s for row in relations.used)
    predictions = [table_set.prediction for table_set in asked.sets.values()]
    return TableAdvice(
        capacity_bytes=capacity_bytes,
        budget_per_month=budget_per_month,
        currency=costs.currency,
        total_bytes=sum(row.size_bytes for row in relations.rows),
        rows=[
            TableUsage(
                name=row.relation.label,
                kind="table" if row.relation.kind == "toast" else row.relation.kind,
                size_bytes=row.size_bytes,
                reads=row.reads,
                writes=row.writes,
                wait_share=row.waited_s / waited_s if waited_s else 0.0,
                at_most=asked.at_most.get(place),
            )
            for place, row in enumerate(relations.used)
        ],
        rebuildable=terms.rebuildable,
        devices=_ranked(answers, costs, rent if budget_per_month is None else None),
        prices=price_sources(names, terms, datetime.date.today()),
        warnings=_distinct_sentences(text for prediction in predictions for text in prediction.warnings),
    )


_NUMBER = re.compile(r"(?<![\w-])[-+]?\d[\d.,]*")
"""Not one in a name, such as gp3 and hdd-10k-sas."""


def _distinct_sentences(texts: Iterable[str]) -> list[str]:
    """The first of the sentences that differ in numbers alone: each set is replayed for itself."""
    by_words: dict[str, str] = {}
    for text in texts:
        by_words.setdefault(_NUMBER.sub("", text), text)
    return list(by_words.values())


def table_advice_beside(
    predictor: Predictor,
    devices: Sequence[str],
    terms: PaymentTerms,
    *,
    budget_per_month: float | None = None,
    named: bool = False,
    machine: Scenario | None = None,
) -> TableAdvice | None:
    """The tables for an advice that has been given on these devices, with those that move alone.

    Returns:
        ``None`` if no table has a name, was used or fits a device.

    Raises:
        TierwiseError: for these reasons, if the user has ``named`` tables.
    """
    if not named and not (predictor.relations and predictor.relations.used):
        return None
    try:
        return advise_tables(
            predictor, devices, terms, budget_per_month=budget_per_month, alone=True, machine=machine
        )
    except TierwiseError:
        if named:
            raise
        return None  # none fits: the advice has refused all else


@dataclass
class _SetPredictions:
    sets: dict[tuple[Places, str], TableSet] = field(default_factory=dict)
    at_most: dict[int, Estimate | None] = field(default_factory=dict)


def _space_for_files(
    costs: PlacementCosts, device: str, terms: PaymentTerms, capacity_bytes: int | None
) -> float:
    """Bytes of recorded files that may go to a device."""
    most = costs.most_bytes(device)
    return most if capacity_bytes is None else min(most, capacity_bytes / terms.room)


def _within_budget(costs: PlacementCosts, device: str, most_bytes: float, budget_per_month: float) -> float:
    """The most of ``most_bytes`` for which a device costs no more than a budget, without its wear."""
    least, most = 0, int(min(most_bytes, MOST_BYTES))
    while least < most:
        middle = (least + most + 1) // 2
        if costs.device_bill(device, middle).per_month <= budget_per_month:
            least = middle
        else:
            most = middle - 1
    return least


def _asked(
    predictor: Predictor,
    relations: Relations,
    costs: PlacementCosts,
    plans: Mapping[str, TableSetPlan],
    machine: Scenario,
    recorded: Prediction,
) -> _SetPredictions:
    """Every question: all devices of one set together, since each set is a recording of its own in memory."""
    wanted = group_by_key(
        (places, device)
        for device, plan in plans.items()
        for places in dict.fromkeys([*plan.sets, *plan.alone])
    )
    bare = {place for plan in plans.values() for (place,) in plan.alone}
    answers = _SetPredictions()
    for places, devices in wanted.items():
        rows = [relations.used[place] for place in places]
        patterns = [row.relation.pattern for row in rows]
        no_time = [NO_TIME] if len(places) == 1 and places[0] in bare else []
        scenarios = [
            machine.changed(placement=dict.fromkeys(patterns, name)) for name in [*devices, *no_time]
        ]
        predictions = predictor.predict(scenarios)
        apart = predictor.selecting(scenarios[0].selected).as_recorded
        writes = {role: load.written_bytes_per_s for role, load in apart.io.items()}
        before = recorded if machine.changes else apart
        for device, prediction in zip(devices, predictions, strict=False):
            answers.sets[places, device] = _set(rows, device, writes, before, prediction, costs)
        if no_time:
            answers.at_most[places[0]] = predictions[-1].speedup
    return answers


def _set(
    rows: Sequence[RelationTraffic],
    device: str,
    writes: Mapping[Role, float],
    before: Prediction,
    after: Prediction,
    costs: PlacementCosts,
) -> TableSet:
    """A set on a device, with its price and the device's wear."""
    size_bytes = sum(row.size_bytes for row in rows)
    bill = costs.device_bill(device, size_bytes, writes.get(Role.SELECTED, 0.0))
    gain = (
        after.rate_per_s.value - before.rate_per_s.value if after.rate_per_s and before.rate_per_s else None
    )
    return TableSet(
        names=[row.relation.label for row in rows],
        patterns=[row.relation.pattern for row in rows],
        databases=[row.relation.database for row in rows],
        size_bytes=size_bytes,
        prediction=after,
        gain_per_s=gain,
        bill=bill,
        gain_per_cost=None if gain is None or not bill.per_month else gain / bill.per_month,
        wear=next(iter(device_wear(after, [device], writes)), None),
    )


def _recommended_set(sets: Sequence[TableSet], recorded: Prediction) -> int | None:
    """Of the sets that can be told from the recorded run, the smallest with enough of their highest gain.

    The interval of a greater gain is wider, and may include no change where that of a smaller gain does not.
    """
    helping = [place for place, each in enumerate(sets) if is_sure_gain(each.prediction, recorded)]
    most = max((sets[place].gain for place in helping), default=0.0)
    return next((place for place in helping if sets[place].gain >= ENOUGH * most), None)


def _ranked(
    answers: Sequence[DeviceTableSets], costs: PlacementCosts, rent_per_month: float | None
) -> list[DeviceTableSets]:
    """As ``TableAdvice.devices`` says."""
    now = costs.now_per_month or 0.0
    offers = [
        (now + answer.recommended.bill.per_month, _speedup(answer))
        for answer in answers
        if answer.recommended
    ]
    limits = monthly_cost_limits([(now, 1.0), *offers], rent_per_month)
    worth = ([speedup for cost, speedup in offers if cost <= limit] for limit in limits)
    fastest = max(next(filter(None, worth), []), default=0.0)

    def rank(answer: DeviceTableSets) -> tuple[bool, float]:
        best, behind = answer.recommended, _speedup(answer) * MARGIN < fastest
        return behind, -_speedup(answer) if behind or best is None else best.bill.per_month

    return sorted(answers, key=rank)


def _speedup(answer: DeviceTableSets) -> float:
    """Of the recommended set; 0 without one."""
    return 1 + answer.recommended.gain if answer.recommended else 0.0
