"""Which tables and indexes deserve which device: the best sets by size, each predicted as a whole."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tierwise.advise.costs import Costs, DeviceBill
from tierwise.advise.endurance import Wear, wear
from tierwise.advise.option import MARGIN, is_told
from tierwise.advise.sources import UsedPrice, used_prices
from tierwise.advise.terms import Terms
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import Estimate, Prediction, Predictor, Scenario, resolve
from tierwise.predict.savings import savings_by_relation
from tierwise.recording.relations import Relations, RelationTraffic
from tierwise.results.measurements import Record

MOST_SETS = 6
"""Sets that are predicted, besides the largest: each is a recording of its own to the simulator."""
MOST_ALONE = 8
"""Tables and indexes that are also predicted alone, where that is asked for."""
ENOUGH = 0.9
"""Share of the highest gain of a set from which on a smaller one is recommended."""
_STEP = 1.01
"""Value of a set over that of the next smaller one from which on both are predicted."""
_MOST_COMBINATIONS = 20_000
"""Of partial sets up to which the search is exact; beyond it, they are thinned evenly."""


class TableRow(Record):
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


class TableSet(Record):
    """Some tables and indexes on the new device, and all else where it was recorded."""

    names: list[str]
    """The tables and indexes, those that were waited for longest first."""
    patterns: list[str]
    """The same as a scenario names them, such as ``table:public.orders``."""
    size_bytes: int
    prediction: Prediction
    gain_per_s: float | None
    """More transactions a second than as recorded; ``None`` if it is refused."""
    bill: DeviceBill
    """What the device costs a month with these files; a drive wears at the recorded rate of writes."""
    gain_per_cost: float | None
    """More transactions a second for each unit of the currency a month; ``None`` for a device that costs
    nothing."""
    wear: Wear | None
    """Of the device; ``None`` if the set is refused."""

    @property
    def gain(self) -> float:
        """Rate over that of the recorded run, less 1; 0 if it is refused."""
        return self.prediction.speedup.value - 1 if self.prediction.speedup else 0.0


class DeviceTables(Record):
    """The sets for one device, smallest first, and the recommended one."""

    device: str
    sets: list[TableSet]
    """Empty if no table that was used fits the device."""
    best: int | None
    """Index of the recommended set; ``None``: leave all where they are."""
    alone: list[TableSet] = []
    """Tables and indexes of which nothing else moves, those that were waited for longest first."""

    @property
    def recommended(self) -> TableSet | None:
        """The recommended set, if there is one."""
        return None if self.best is None else self.sets[self.best]


class TableAdvice(Record):
    """The sets of tables and indexes worth a device, for each device."""

    capacity_bytes: int | None
    """Space for tables on the device; ``None`` for all of the device."""
    currency: str
    """Of every amount: a code of ISO 4217, such as ``USD``."""
    total_bytes: int
    """Of all named tables and indexes."""
    rows: list[TableRow]
    """Those that were used, those that were waited for longest first."""
    devices: list[DeviceTables]
    """The best first: devices whose recommended set is as fast as the fastest, the cheapest of them first;
    then by the gain; then those that gain nothing."""
    prices: list[UsedPrice]
    """Source and date of the price of each device that is not owned."""
    warnings: list[str]


def advise_tables(
    predictor: Predictor,
    devices: Sequence[str],
    terms: Terms | None = None,
    capacity_bytes: int | None = None,
    *,
    alone: bool = False,
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
        alone: whether to predict the ``MOST_ALONE`` most used ones alone too, and what each gains at most.

    Raises:
        TierwiseError: an observation; no table has a name, was used, or fits a device; an unknown device, or
            one without a price.
    """
    found = predictor.relations
    if found is None:
        raise TierwiseError("an observation does not tell tables apart", "record with tierwise record")
    found.require_names()
    if not found.used:
        why = "no table or index was read or written while the database was recorded"
        raise TierwiseError(why, "record under load")
    terms = terms or Terms()
    costs = Costs.of(predictor, terms)
    saved = savings_by_relation(predictor, found, MOST_ALONE) if alone else {}
    names = list(dict.fromkeys(resolve(name).name for name in devices))
    answers = [_Asked(predictor, found, costs, name).answer(terms, capacity_bytes, alone) for name in names]
    if not any(one.sets for one in answers):
        raise TierwiseError("no table or index that was used fits the device", "give a larger --capacity")
    waited_s = sum(row.waited_s for row in found.used)
    return TableAdvice(
        capacity_bytes=capacity_bytes,
        currency=costs.currency,
        total_bytes=sum(row.size_bytes for row in found.rows),
        rows=[
            TableRow(
                name=row.relation.label,
                kind="table" if row.relation.kind == "toast" else row.relation.kind,
                size_bytes=row.size_bytes,
                reads=row.reads,
                writes=row.writes,
                wait_share=row.waited_s / waited_s if waited_s else 0.0,
                at_most=saved[row.relation.label].speedup if row.relation.label in saved else None,
            )
            for row in found.used
        ],
        devices=_ranked(answers),
        prices=used_prices(names, terms, datetime.date.today()),
        warnings=list(
            dict.fromkeys(
                text
                for answer in answers
                for one in [*answer.sets, *answer.alone]
                for text in one.prediction.warnings
            )
        ),
    )


def tables_beside(
    predictor: Predictor, devices: Sequence[str], terms: Terms, *, named: bool = False
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
        return advise_tables(predictor, devices, terms, alone=True)
    except TierwiseError:
        if named:
            raise
        return None  # none fits: the advice has refused all else


class _Asked:
    """The questions about one device."""

    def __init__(self, predictor: Predictor, found: Relations, costs: Costs, device: str) -> None:
        self._predictor, self._found, self._costs, self._device = predictor, found, costs, device

    def answer(self, terms: Terms, capacity_bytes: int | None, alone: bool) -> DeviceTables:
        most = self._costs.most_bytes(self._device)
        if capacity_bytes is not None:
            most = min(most, capacity_bytes / terms.room)
        valued = [(row, value) for row, value in _valued(self._found) if row.size_bytes <= most]
        fronts = best_sets([(row.size_bytes, value) for row, value in valued], most)
        fronts = _spread(_distinct(fronts, [value for _, value in valued]))
        sets = [self._predicted([valued[place][0] for place in sorted(places)]) for places in fronts]
        sets.sort(key=lambda one: one.size_bytes)
        single = [row for row in self._found.used if row.size_bytes <= most][:MOST_ALONE] if alone else []
        known = {one.names[0]: one for one in sets if len(one.names) == 1}
        return DeviceTables(
            device=self._device,
            sets=sets,
            best=_best(sets, self._predictor.as_recorded),
            alone=[known.get(row.relation.label) or self._predicted([row]) for row in single],
        )

    def _predicted(self, rows: Sequence[RelationTraffic]) -> TableSet:
        """A set on the device, with its price and the device's wear."""
        device, scenario = (
            self._device,
            Scenario(placement={row.relation.pattern: self._device for row in rows}),
        )
        (prediction,) = self._predictor.predict([scenario])
        before = self._predictor.selecting(scenario.selected).as_recorded
        writes = {role: load.written_bytes_per_s for role, load in before.io.items()}
        size_bytes = sum(row.size_bytes for row in rows)
        bill = self._costs.device_bill(device, size_bytes, writes.get(Role.SELECTED, 0.0))
        gain = (
            prediction.rate_per_s.value - before.rate_per_s.value
            if prediction.rate_per_s and before.rate_per_s
            else None
        )
        return TableSet(
            names=[row.relation.label for row in rows],
            patterns=[row.relation.pattern for row in rows],
            size_bytes=size_bytes,
            prediction=prediction,
            gain_per_s=gain,
            bill=bill,
            gain_per_cost=None if gain is None or not bill.per_month else gain / bill.per_month,
            wear=next(iter(wear(prediction, [device], writes)), None),
        )


def best_sets(items: Sequence[tuple[int, float]], capacity: float | None) -> list[tuple[int, ...]]:
    """The sets of items that no other set of at most their size surpasses in value, smallest first.

    Args:
        items: size and value of each, both at least 0.
        capacity: largest size of a set; ``None`` for no limit.
    """
    kept: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    for place, (size, value) in enumerate(items):
        more = [(one[0] + size, one[1] + value, (*one[2], place)) for one in kept]
        both = sorted(
            kept + [one for one in more if capacity is None or one[0] <= capacity],
            key=lambda one: (one[0], -one[1]),
        )
        kept = []
        for one in both:
            if not kept or one[1] > kept[-1][1]:
                kept.append(one)
        kept = kept[:: -(-len(kept) // _MOST_COMBINATIONS)]
    return [places for _, _, places in kept if places]


def _valued(found: Relations) -> list[tuple[RelationTraffic, float]]:
    """Tables and indexes that were used, with their value in seconds of sessions' waits."""
    waited_s = sum(row.waited_s for row in found.used)
    device_s = sum(row.device_s for row in found.used) or 1.0
    return [(row, row.waited_s + row.device_s / device_s * (waited_s - row.waited_s)) for row in found.used]


def _distinct(sets: Sequence[tuple[int, ...]], values: Sequence[float]) -> list[tuple[int, ...]]:
    """Sets that are worth ``_STEP`` more than a smaller one, and the last."""
    kept: list[tuple[int, ...]] = []
    most = 0.0
    for places in sets:
        worth = sum(values[place] for place in places)
        if worth > _STEP * most:
            kept, most = [*kept, places], worth
    return kept if not sets or kept[-1] == sets[-1] else [*kept, sets[-1]]


def _spread(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """At most ``MOST_SETS`` of the sets and the last, evenly over the front."""
    if len(sets) <= MOST_SETS:
        return list(sets)
    places = {round(number * (len(sets) - 1) / MOST_SETS) for number in range(MOST_SETS + 1)}
    return [sets[place] for place in sorted(places)]


def _best(sets: Sequence[TableSet], recorded: Prediction) -> int | None:
    """The smallest set with enough of the highest gain, if it is told from the recorded run."""
    most = max((one.gain for one in sets), default=0.0)
    for place, one in enumerate(sets):
        if one.gain >= ENOUGH * most and is_told(one.prediction, recorded):
            return place
    return None


def _ranked(answers: Sequence[DeviceTables]) -> list[DeviceTables]:
    """As ``TableAdvice.devices`` says."""
    speedups = [1 + one.recommended.gain if one.recommended else 0.0 for one in answers]

    def rank(place: int) -> tuple[bool, float]:
        best, behind = answers[place].recommended, speedups[place] * MARGIN < max(speedups)
        return behind, -speedups[place] if behind or best is None else best.bill.per_month

    return [answers[place] for place in sorted(range(len(answers)), key=rank)]
