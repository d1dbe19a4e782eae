"""Every placement of the roles over some devices, best first.

All of them are replayed under one seed and for few transactions, the best few again under every seed. Roles
with almost no I/O stay where they are, and roles that the engine keeps together move as one. If there are
still too many placements, :func:`search_cost_front` chooses those that are replayed. Notes say both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict.inseparable_roles import Unit, role_units
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import Prediction, Refusal
from tierwise.predict.predictor import Predictor
from tierwise.predict.replayer import SimulationRequest
from tierwise.predict.scenario import Scenario
from tierwise.predict.scenario_machine import scenario_on_instance
from tierwise.predict.simulator_output import CHANCE, SimulationOutcome
from tierwise.predict.uncertainty import uncertainty_of
from tierwise.results.measurements import StrictModel

_AT_ONCE = 4
"""Placements of a front whose neighbours are simulated in one step, evenly spread over the front."""

Placement = dict[Role, str]


class SimulatedPlacement(Protocol):
    """A simulated placement."""

    @property
    def placement(self) -> Placement:
        """Device of each role."""

    @property
    def rate_per_s(self) -> float:
        """Its rate."""


L = TypeVar("L", bound=SimulatedPlacement)


def search_cost_front(
    simulate: Callable[[list[Placement]], list[L]],
    placed: Sequence[Sequence[Role]],
    devices: Sequence[str],
    keep: Callable[[Placement], bool],
    cost: Callable[[L], float],
    most: int,
) -> list[L]:
    """Simulate the placements that are likely on the front: a local search.

    The front is the fastest placement for each amount of money. As in Pareto local search (Paquete,
    Chiarandini and Stützle, 2004, in *Metaheuristics for Multiobjective Optimisation*), the neighbours of
    placements on the front are simulated: those that move one role, or the roles that move as one. Once all
    neighbours are known, the search goes on with the front of the other placements, until the limit of
    simulations is reached. Nothing is random. Nothing guarantees that the front found is the true one.

    Args:
        simulate: gives the looks of placements; it leaves out those without an answer.
        placed: roles to place, those together that move as one.
        keep: which placements to consider.
        most: placements to simulate at most.

    Returns:
        All looks.
    """
    same = [{role: device for unit in placed for role in unit} for device in devices]
    fresh = [*same, *_neighbours(same[0], placed, devices)]
    asked: set[tuple[str, ...]] = set()
    simulated: list[L] = []
    waiting: list[tuple[float, L]] = []
    while len(asked) < most:
        new = {tuple(placement.values()): placement for placement in fresh}
        kept = [(key, placement) for key, placement in new.items() if key not in asked and keep(placement)][
            : most - len(asked)
        ]
        asked.update(key for key, _ in kept)
        looks = simulate([placement for _, placement in kept]) if kept else []
        simulated += looks
        waiting += [(cost(look), look) for look in looks]
        best = cost_front(waiting)
        if not best:
            break
        chosen = best[:: len(best) // -_AT_ONCE]
        waiting = [pair for pair in waiting if all(pair is not other for other in chosen)]
        fresh = [near for _, look in chosen for near in _neighbours(look.placement, placed, devices)]
    return simulated


def cost_front(priced: Sequence[tuple[float, L]]) -> list[tuple[float, L]]:
    """Placements that are faster than every one that costs no more, the cheapest first."""
    steps: list[tuple[float, L]] = []
    for pair in sorted(priced, key=lambda each: (each[0], -each[1].rate_per_s)):
        if not steps or pair[1].rate_per_s > steps[-1][1].rate_per_s:
            steps.append(pair)
    return steps


def _neighbours(
    placement: Placement, placed: Sequence[Sequence[Role]], devices: Sequence[str]
) -> Iterator[Placement]:
    """The placements that differ in one role, or in the roles that move as one."""
    for unit in placed:
        for device in devices:
            if device != placement[unit[0]]:
                yield {**placement, **dict.fromkeys(unit, device)}


MOST_PLACEMENTS = 4096
"""Most placements to replay; two processors take some seconds for them."""
CLOSER = 10
"""Number of the best that are replayed again under every seed."""
TRANSACTIONS = 1_600_000
"""Transactions of a first round, shared by its placements."""
ENOUGH = (400, 3000)
"""Least and most counted transactions of each placement in the first round."""
SPAN_S = 5.0
"""Virtual time after which fewer are enough."""
_SIMPLEST = 3
"""Placements with the fewest moves, of those that may be as fast as the fastest, that are replayed again."""
_ORDERED = 0.95
"""Ratio of rates of the first round above which order may be chance; see :func:`first_round_transactions`."""
_NEXT_TO_NOTHING = 0.001
"""A role up to this share of the busiest role's time, and of all bytes, stays where it is."""

Keep = Callable[[dict[Role, str]], bool]
Cost = Callable[["RankedPlacement"], float]


class RankedPlacement(StrictModel):
    """A placement and its figures under one seed, for few transactions."""

    placement: dict[Role, str]
    rate_per_s: float
    p50_us: float
    p95_us: float
    p99_us: float


@dataclass(frozen=True)
class FirstRoundOutcome:
    """A placement and its outcome under one seed."""

    placement: dict[Role, str]
    scenario: Scenario
    outcome: SimulationOutcome


class Ranking(StrictModel):
    """Placements, the highest rate first."""

    devices: list[str]
    roles: list[Role]
    """Roles that were placed; the others stayed where they were."""
    left: list[Role]
    complete: bool
    """Whether every placement was replayed, rather than those that a search chose."""
    tried: int
    ranked: list[RankedPlacement]
    closer: list[Prediction]
    """Predictions of the best of them, under every seed: first those as fast as the fastest, but for chance,
    fewest moves and then fewest devices first."""
    notes: list[str]
    """What was left out, as sentences."""
    refused: Refusal | None = None
    """Why no placement could be replayed."""

    def alike(self, prediction: Prediction) -> bool:
        """Whether the best cannot be told from this one: their intervals of the rate overlap."""
        best = self.closer[0].rate_per_s
        own = prediction.rate_per_s
        return bool(best and own and own.high >= best.low)


def rank_placements(
    predictor: Predictor,
    devices: Sequence[str],
    other: Scenario | None = None,
    *,
    keep: Keep = lambda _: True,
    cost: Cost = lambda _: 0.0,
    closer: int = CLOSER,
    most: int = MOST_PLACEMENTS,
) -> Ranking:
    """Rank the placements of the recorded roles over some devices.

    Args:
        devices: names, as in a scenario; ``recorded`` leaves a role where it was.
        other: what else to change.
        keep: which placements to consider.
        cost: of a placement; a search over too many looks for the fastest at each cost.
        closer: how many of the best to predict with intervals.
        most: placements to replay at most.

    Raises:
        TierwiseError: no device, an unknown one, or what :func:`require_rankable` refuses.
    """
    require_rankable(other or Scenario())
    names = list(dict.fromkeys(name if name == RECORDED else resolve_device(name).name for name in devices))
    if not names:
        raise TierwiseError("no device to place files on", "name one or more, as nvme-dc,hdd-7k2")
    idle, placed = roles_by_load(predictor)
    base = scenario_on_instance(other or Scenario(), predictor.work)

    count = len(names) ** len(placed)
    refused: list[Refusal] = []

    def looked_at(placements: Iterable[dict[Role, str]]) -> list[RankedPlacement]:
        looks = first_round_outcomes(
            predictor, base, placements, first_round_transactions(min(count, most)), refused
        )
        return [_ranked(predictor, look) for look in looks]

    if count <= most:
        ranked = looked_at(filter(keep, all_placements(placed, names)))
    else:
        ranked = search_cost_front(looked_at, placed, names, keep, cost, most)
    ranked.sort(key=lambda placing: placing.rate_per_s, reverse=True)
    best = predictor.predict(
        [scenario_with_placement(base, placement) for placement in _likely_best(ranked, closer)]
    )
    best.sort(key=rate_of, reverse=True)
    fastest = rate_of(best[0]) if best else 0.0

    def simplest_of_the_best(prediction: Prediction) -> tuple[float, float]:
        as_fast = rate_of(prediction) * (1 + CHANCE) >= fastest
        return placement_simplicity(placement_of_prediction(prediction)) if as_fast else (math.inf, math.inf)

    best.sort(key=simplest_of_the_best)
    roles = [role for unit in placed for role in unit]
    return Ranking(
        devices=names,
        roles=roles,
        left=[role for role in predictor.work.footprints if role not in roles],
        complete=count <= most,
        tried=len(ranked),
        ranked=ranked,
        closer=best,
        notes=[
            *idle_roles_notes(idle),
            *([] if count <= most else [_searched(predictor, base, count, ranked)]),
        ],
        refused=refused[0] if refused and not ranked else None,
    )


def rate_of(prediction: Prediction) -> float:
    """The predicted rate; 0 without an answer."""
    return prediction.rate_per_s.value if prediction.rate_per_s else 0.0


def relocated_roles(placement: Placement) -> int:
    """Roles that leave where they were recorded."""
    return sum(device != RECORDED for device in placement.values())


def placement_simplicity(placement: Placement) -> tuple[int, int]:
    """Number of moves, and of devices that they go to: fewer are simpler."""
    return relocated_roles(placement), len(set(placement.values()) - {RECORDED})


def _likely_best(ranked: Sequence[RankedPlacement], count: int) -> list[Placement]:
    """The fastest, and of those that one seed cannot tell from the fastest those with the fewest moves."""
    near = [look.placement for look in ranked if look.rate_per_s > _ORDERED * ranked[0].rate_per_s]
    fewest = sorted(near, key=placement_simplicity)[: min(_SIMPLEST, count)]
    others = [look.placement for look in ranked if look.placement not in fewest]
    return fewest + others[: count - len(fewest)] if count else []


def require_rankable(machine: Scenario) -> None:
    """Refuse what a ranking by the highest rate would leave out."""
    if machine.settings:
        raise TierwiseError(
            "--set: placements are ranked with the recorded settings", "name one with --place"
        )
    if machine.rate_per_s is not None or machine.growth is not None:
        option = "--rate" if machine.rate_per_s is not None else "--growth"
        raise TierwiseError(
            f"{option}: placements are ranked by the highest rate", f"leave out --devices or {option}"
        )


def roles_by_load(predictor: Predictor) -> tuple[list[Role], list[Unit]]:
    """Roles with almost no I/O, and the others, busiest first, those together that move as one."""
    load = predictor.as_recorded.io
    moved = {
        role: device_load.read_bytes_per_s + device_load.written_bytes_per_s
        for role, device_load in load.items()
    }
    busiest = max((device_load.busy_share for device_load in load.values()), default=0.0)
    total = sum(moved.values())

    def matters(role: Role) -> bool:
        device_load = load.get(role)
        return device_load is not None and (
            device_load.busy_share > _NEXT_TO_NOTHING * busiest or moved[role] > _NEXT_TO_NOTHING * total
        )

    def busy(unit: Unit) -> float:
        return max(load[role].busy_share for role in unit if role in load)

    roles = list(predictor.work.footprints)
    loaded = [unit for unit in role_units(predictor.run.engine, roles) if any(map(matters, unit))]
    placed = {role for unit in loaded for role in unit}
    return [role for role in roles if role not in placed], sorted(loaded, key=busy, reverse=True)


def all_placements(placed: Sequence[Unit], devices: Sequence[str]) -> Iterable[dict[Role, str]]:
    """Every placement; the device of the last unit changes fastest."""
    for choice in itertools.product(devices, repeat=len(placed)):
        yield {role: device for unit, device in zip(placed, choice, strict=True) for role in unit}


def scenario_with_placement(base: Scenario, placement: Mapping[Role, str]) -> Scenario:
    """A scenario with the roles on these devices."""
    return base.changed(placement={role.value: device for role, device in placement.items()})


def placement_of_prediction(prediction: Prediction) -> dict[Role, str]:
    """The roles that its scenario moved."""
    return {Role(role): device for role, device in prediction.scenario.placement.items()}


def first_round_transactions(placements: int) -> int:
    """Transactions to count of each of so many placements in the first round.

    With 400, at least 99 % of the pairs of placements that differ by 5 % are in the order of a longer replay,
    and building a placement's devices takes longer than its replay (benchmarks/ranking.py, 27 November 2026).
    """
    least, most = ENOUGH
    return max(least, min(most, TRANSACTIONS // max(placements, 1)))


def first_round_outcomes(
    predictor: Predictor,
    base: Scenario,
    placements: Iterable[dict[Role, str]],
    transactions: int,
    refused: list[Refusal] | None = None,
) -> list[FirstRoundOutcome]:
    """Replay each placement once, for few transactions; those without an answer are left out.

    Args:
        refused: receives the reason of each of those.
    """
    why = [] if refused is None else refused
    asked: list[tuple[dict[Role, str], Scenario, SimulationRequest]] = []
    for placement in placements:
        scenario = scenario_with_placement(base, placement)
        refusal = predictor.refusal(scenario)
        if refusal is None:
            request, *_ = predictor.requests(scenario, [0], SPAN_S, transactions)
            asked.append((placement, scenario, request))
        elif refusal.refused:
            why.append(refusal.refused)
    answers = predictor.replayer.ask([request for *_, request in asked]) if asked else []
    why += [answer for answer in answers if isinstance(answer, Refusal)]
    return [
        FirstRoundOutcome(placement, scenario, answer)
        for (placement, scenario, _), answer in zip(asked, answers, strict=True)
        if not isinstance(answer, Refusal)
    ]


def _ranked(predictor: Predictor, look: FirstRoundOutcome) -> RankedPlacement:
    """Values alone; the rate is capped at the bound."""
    rate, *_ = predictor.answers.rates(look.scenario, look.outcome)
    bound = predictor.answers.bound(look.scenario)
    p50_us, p95_us, p99_us = predictor.answers.percentiles_us(look.outcome)
    return RankedPlacement(
        placement=look.placement,
        rate_per_s=min(rate, bound.rate_per_s) if bound else rate,
        p50_us=p50_us,
        p95_us=p95_us,
        p99_us=p99_us,
    )


def idle_roles_notes(idle: Sequence[Role]) -> list[str]:
    """A sentence on the roles with almost no I/O, which stay."""
    names = ", ".join(idle)
    return [f"{names}: asked next to nothing of a device and stayed where it was recorded"] if idle else []


def _searched(predictor: Predictor, base: Scenario, count: int, ranked: Sequence[RankedPlacement]) -> str:
    """A sentence on a search: how much was simulated, and how much faster the best of all can be."""
    text = f"{len(ranked):,} of {count:,} placements were simulated, so a better placement may exist"
    everything = {
        role: device for placing in ranked for role, device in placing.placement.items() if device != RECORDED
    }
    bound = predictor.answers.bound(scenario_with_placement(base, everything))
    if not bound or not ranked:
        return text
    times = max(bound.rate_per_s / ranked[0].rate_per_s, 1.0)
    bounded = f"none is more than {significant_text(times)} times as fast as the best of them"
    return f"{text}; by the recorded waits, {bounded}"


@dataclass
class PlacementSurvey:
    """Predictions of all placements.

    Attributes:
        devices: ``recorded``, then the full names of the others.
        placed: roles that are placed, those together that move as one.
        left: roles that stay where they were recorded.
        predictions: by number, see :meth:`number`; ``None`` where there is no answer.
        notes: what was left out, as sentences.
    """

    devices: list[str]
    placed: list[Unit]
    left: list[Role]
    predictions: list[Prediction | None]
    notes: list[str]

    def number(self, placement: Mapping[Role, str]) -> int | None:
        """Number of a placement: a digit for each unit of roles, the index of a device, the last fastest.

        Roles that are not named stay where they were recorded. ``None`` for a placement that is not in the
        survey.
        """
        known = {role for unit in self.placed for role in unit}
        if any(
            (role not in known and device != RECORDED) or device not in self.devices
            for role, device in placement.items()
        ):
            return None
        number = 0
        for unit in self.placed:
            device, *others = {placement.get(role, RECORDED) for role in unit}
            if others:
                return None
            number = number * len(self.devices) + self.devices.index(device)
        return number

    def place(self, closer: Iterable[Prediction]) -> None:
        """Replace predictions by others of the same placements that rest on more seeds."""
        for prediction in closer:
            number = self.number(placement_of_prediction(prediction))
            if number is not None:
                self.predictions[number] = prediction


def survey_placements(
    predictor: Predictor,
    devices: Sequence[str],
    keep: Keep = lambda _: True,
    first: Collection[Role] = (),
    machine: Scenario | None = None,
) -> PlacementSurvey:
    """Predict every placement over the recorded devices and some others, under one seed.

    The intervals hold the model's error and the reproduction's; the spread over seeds, not known from one, is
    far smaller.

    Args:
        predictor: of the recording. If its replayer remembers, placements that were ranked are not replayed.
        keep: which placements to predict; the others have no answer.
        first: roles to place before busier ones, where the placements of all roles are too many.
        machine: what every placement has besides; nothing by default.
    """
    names = [RECORDED, *dict.fromkeys(resolve_device(name).name for name in devices)]
    if len(names) == 1:
        raise TierwiseError("no device to place files on", "name one or more, as nvme-dc,hdd-7k2")
    idle, loaded = roles_by_load(predictor)
    order = sorted(loaded, key=lambda unit: not set(unit) & set(first))
    placed = order[: max(_units_that_fit(len(names)), 1)]
    fixed = [role for unit in order[len(placed) :] for role in unit]
    roles = {role for unit in placed for role in unit}
    made = PlacementSurvey(
        devices=names,
        placed=placed,
        left=[role for role in predictor.work.footprints if role not in roles],
        predictions=[None] * len(names) ** len(placed),
        notes=[*idle_roles_notes(idle), *([_fixed(fixed)] if fixed else [])],
    )
    asked = filter(keep, all_placements(placed, names))
    for look in first_round_outcomes(
        predictor, machine or Scenario(), asked, first_round_transactions(len(made.predictions))
    ):
        doubt = uncertainty_of(look.scenario, predictor.work, predictor.about.stolen_cpu_share)
        made.place([predictor.answers.prediction(look.scenario, [look.outcome], doubt)])
    made.place([predictor.as_recorded])
    return made


def _units_that_fit(devices: int) -> int:
    """How many units of roles have no more than ``MOST_PLACEMENTS`` placements."""
    count = 0
    while devices ** (count + 1) <= MOST_PLACEMENTS:
        count += 1
    return count


def _fixed(roles: Sequence[Role]) -> str:
    return (
        f"more than {MOST_PLACEMENTS:,} placements: {', '.join(roles)} cannot be moved on this page; advice "
        "and prediction on the command line place all roles"
    )
