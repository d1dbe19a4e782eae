"""How sure each move is, and the best sets with other budgets, more money, other speed-ups.

The logarithm of a speed-up is drawn from a normal distribution with the half widths of its 95 % interval. The
part of the interval that is due to the simulator's seeds is drawn for each option. The rest, most of it the
model's error, is drawn once for each database: it is mostly the same before and after a move.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tierwise.fleet.database_options import FleetOption
from tierwise.fleet.knapsack import ChosenOptions, Knapsack
from tierwise.fleet.records import BudgetPoint, DatabaseMove, ExtraBudget, FleetDatabase, FleetMove
from tierwise.model.extras import np
from tierwise.model.placement import Role
from tierwise.predict import Estimate

if TYPE_CHECKING:
    from tierwise.fleet.knapsack import Floats

DRAWS = 200
"""Number of draws: a share of one half is then known to ±0.07 (95 %)."""
_DEVIATIONS = 1.959964
"""Half width of a 95 % interval, in standard deviations."""


def sample_speedups(databases: Sequence[Sequence[FleetOption]], seed: int, draws: int) -> Iterator[Floats]:
    """Speed-ups of every option, database after database, for each draw.

    Recorded placements have 1. What cannot be told from staying is drawn around 1. No speed-up exceeds the
    bound from the recorded waits.
    """
    rng = np.random.default_rng(seed)
    options = [option for each in databases for option in each]
    owner = np.repeat(np.arange(len(databases)), [len(each) for each in databases])
    values = np.array([option.counted_speedup for option in options])
    seeds = np.array([option.seed_half_width if option.placement else 0.0 for option in options])
    below, above = (np.array([_rest(option, end) for option in options]) for end in ("low", "high"))
    most = np.array([option.most_speedup or np.inf for option in options])
    for _ in range(draws):
        model = (rng.standard_normal(len(databases)) / _DEVIATIONS)[owner]
        chance = rng.standard_normal(len(options)) / _DEVIATIONS
        yield np.minimum(values * np.exp(np.where(model < 0, below, above) * model + seeds * chance), most)


def _rest(option: FleetOption, end: str) -> float:
    """Distance of an end of the interval from the value, on the logarithm, without what the seeds add."""
    if not option.placement:
        return 0.0
    distance = abs(math.log(getattr(option.speedup, end) / option.speedup.value))
    return math.sqrt(max(distance**2 - option.seed_half_width**2, 0.0))


NEXT_PER_MONTH = 1000.0
"""The further money of which the answer says what it buys, in the currency of the prices."""
NEAR = 1e-3
"""Gap of the sets of draws and of the curve. To prove that they are the best would take most of the time."""
_POINTS = 20
"""Points of the curve; their distance grows, as the first moves gain most for their money."""

Moved = tuple[str, Role, str]
"""Database, role and device."""


def gain_share(
    knapsack: Knapsack, best: ChosenOptions, full: ChosenOptions, drawn: Iterable[Floats]
) -> Estimate | None:
    """Gain of the best set over that of the best without a budget; the sets are the same in every draw."""
    if full.gain <= 0:
        return None
    value = best.gain / full.gain
    shares = [
        knapsack.gain(best.options, gains) / all_of_it
        for gains in drawn
        if (all_of_it := knapsack.gain(full.options, gains)) > 0
    ]
    low, high = np.quantile(shares or [value], [0.025, 0.975])
    return Estimate(value=value, low=min(float(low), value), high=max(float(high), value))


def moves_by_certainty(databases: Sequence[FleetDatabase], draws: Sequence[ChosenOptions]) -> list[FleetMove]:
    """The moves of the best set, then others of the sets of draws, the surest first."""
    chosen = {_key(move) for database in databases for move in database.moves(database.chosen)}
    counts: Counter[Moved] = Counter()
    for database, numbers in zip(databases, zip(*(draw.options for draw in draws), strict=True), strict=True):
        for number, count in Counter(numbers).items():
            counts.update({_key(move): count for move in database.moves(number)})
    moves = [
        FleetMove(
            database=database,
            role=role,
            device=device,
            chosen=(database, role, device) in chosen,
            draws_share=counts[database, role, device] / len(draws),
        )
        for database, role, device in dict.fromkeys([*chosen, *counts])
    ]
    return sorted(moves, key=lambda move: (not move.chosen, -move.draws_share, _key(move)))


def budget_curve(
    knapsack: Knapsack, gains: Floats, full: ChosenOptions, budget: float | None
) -> list[BudgetPoint]:
    """The best sets from no money, or the least that must be spent, to the price of all gains, each once."""
    least = max(knapsack.least_cost, 0.0)
    steps = [least + (full.cost - least) * (number / _POINTS) ** 2 for number in range(_POINTS + 1)]
    asked = [] if budget is None else [budget]
    points: list[BudgetPoint] = []
    for limit in sorted({*(steps if full.cost > least else [least]), *asked}):
        best = knapsack.best(gains, limit, 0.0 if limit == budget else NEAR)
        share = best.gain / full.gain if full.gain > 0 else 0.0
        if points and share <= points[-1].gain_share and limit != budget:
            continue  # the set for less money is as good
        points.append(BudgetPoint(budget_per_month=limit, cost_per_month=best.cost, gain_share=share))
    return points


def extra_budget(
    knapsack: Knapsack,
    gains: Floats,
    full: ChosenOptions,
    best: ChosenOptions,
    budget: float,
    databases: Sequence[FleetDatabase],
) -> ExtraBudget:
    """What ``NEXT_PER_MONTH`` more than the budget would buy."""
    more = knapsack.best(gains, budget + NEXT_PER_MONTH)
    before = {_key(move): move for database in databases for move in database.moves(database.chosen)}
    after = {
        _key(move): move
        for database, number in zip(databases, more.options, strict=True)
        for move in database.moves(number)
    }
    return ExtraBudget(
        more_per_month=NEXT_PER_MONTH,
        cost_per_month=more.cost - best.cost,
        gain_share=(more.gain - best.gain) / full.gain if full.gain > 0 else 0.0,
        begun=[move for key, move in after.items() if key not in before],
        ended=[move for key, move in before.items() if key not in after],
    )


def _key(move: DatabaseMove) -> Moved:
    return move.database, move.role, move.device
