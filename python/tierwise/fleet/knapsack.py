"""The best set of options under one budget: one option of each database, exactly; options ruled out before.

A Lagrange multiplier prices the budget. The relaxed problem then bounds the gain of every set that has a
given option. If a known set gains more, no best set has the option (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, chapter 11). Of 5,000 options of 1,000 databases, some 100 remain.

The multiple-choice knapsack problem (Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, chapter 11)
as a mixed-integer program, solved by HiGHS through ``scipy.optimize.milp``. An option is a variable, 0 or 1.
One option of each database is chosen. The sum of costs is within the budget, the sum of gains is maximal.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import np, require_extra
from tierwise.model.units import money_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEPS = 60
"""Halvings of the multiplier's range."""
_TOLERANCE = 1e-9
"""Of gains: the rounding of their sums."""


@dataclass(frozen=True)
class RelaxedSolution:
    """What the relaxed problem says of the best set.

    Attributes:
        options: number of an option for each database: a set within the budget, which is close to the best.
        gain: of this set.
        most: no set gains more.
        keep: whether an option may be in a best set, for every option.
    """

    options: NDArray[np.int64]
    gain: float
    most: float
    keep: NDArray[np.bool_]


def solve_relaxed(costs: Floats, gains: Floats, starts: NDArray[np.int64], budget: float) -> RelaxedSolution:
    """Solve the relaxed problem and fill up its set.

    Args:
        costs: of every option, database after database.
        gains: likewise.
        starts: number of the first option of each database.
        budget: at least the cost of the cheapest set.
    """
    sizes = np.diff(np.append(starts, len(costs)))

    def cheapest_best(price: float) -> Floats:
        """Cost of the best option of each database, if its cost counts at a price."""
        values = gains - price * costs
        best = np.repeat(np.maximum.reduceat(values, starts), sizes)
        least_costs: Floats = np.minimum.reduceat(np.where(values >= best, costs, np.inf), starts)
        return least_costs

    price = _price_of_money(lambda price: float(cheapest_best(price).sum()) <= budget)
    values = gains - price * costs
    best = np.maximum.reduceat(values, starts)
    each_best = np.repeat(best, sizes)
    most = float(best.sum()) + price * budget
    preferred = np.where(values >= each_best, -costs, -np.inf)
    options = _spend_rest(costs, gains, most_preferred_options(preferred, starts), sizes, budget)
    gain = float(gains[options].sum())
    return RelaxedSolution(options, gain, most, each_best - values <= most - gain + _TOLERANCE)


def most_preferred_options(preferred: Floats, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the most preferred option of each database, the first of equals."""
    sizes = np.diff(np.append(starts, len(preferred)))
    best = np.repeat(np.maximum.reduceat(preferred, starts), sizes)
    candidates = np.flatnonzero(preferred == best)
    first: NDArray[np.int64] = candidates[np.searchsorted(candidates, starts)]
    return first


def _price_of_money(affordable: Callable[[float], bool]) -> float:
    """The lowest price of money at which the best options can be paid, found by halving."""
    if affordable(0.0):
        return 0.0
    low, high = 0.0, 1e-6
    while not affordable(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high


def _spend_rest(
    costs: Floats, gains: Floats, options: NDArray[np.int64], sizes: NDArray[np.int64], budget: float
) -> NDArray[np.int64]:
    """A set after the rest of its budget is spent on exchanges, the greatest gain first."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    options, left = options.copy(), budget - float(costs[options].sum())
    while True:
        more = gains - gains[options][owner]
        allowed = costs - costs[options][owner] <= left
        best = int(np.argmax(np.where(allowed, more, -np.inf)))
        if not allowed[best] or more[best] <= _TOLERANCE:
            return options
        left -= float(costs[best] - costs[options[owner[best]]])
        options[owner[best]] = best


_MOST_S = 60.0
"""Time after which the best set so far is taken, with its gap."""
_ROUNDING = 1e-9
"""Of a gap, up to which a set is proved to be the best, and of costs before ``money_sum``."""
_SCALE = 1e4
"""Greatest gain as the solver sees it: its absolute tolerance of 1e-6 is then 1e-10 of it."""


@dataclass(frozen=True)
class ChosenOptions:
    """A set of options.

    Attributes:
        options: index of the option of each database, among its own.
        gain: sum of their gains.
        cost: sum of their costs.
        gap: how much more the best set may gain at most, as a share of the gain; 0 if this is the best.
    """

    options: tuple[int, ...]
    gain: float
    cost: float
    gap: float


def require_solver() -> None:
    """Check that the solver is installed."""
    require_extra("cluster", "the best set of moves", ["scipy"])


class Knapsack:
    """Options of many databases, each with a cost.

    Args:
        costs: for each database, the cost of each of its options; at least one option each.
        currency: of the costs, for refusals.
    """

    def __init__(self, costs: Sequence[Sequence[float]], currency: str = "USD") -> None:
        require_solver()
        self._currency = currency
        self._optimize: Any = import_module("scipy.optimize")
        self._sparse: Any = import_module("scipy.sparse")
        sizes = np.array([len(row) for row in costs], dtype=np.int64)
        self._starts = np.cumsum(sizes) - sizes
        self._owner = np.repeat(np.arange(len(costs)), sizes)
        self._costs = np.array([cost for row in costs for cost in row], dtype=np.float64)

    @property
    def least_cost(self) -> float:
        """Of the cheapest set."""
        return money_sum(np.minimum.reduceat(self._costs, self._starts))

    def best(self, gains: Floats, budget: float | None, gap: float = 0.0) -> ChosenOptions:
        """The set with the greatest gain; of options of one database with the same gain, the cheapest.

        Args:
            budget: most that the set may cost; no limit if ``None``.
            gap: how much more another set may gain at most, as a share of the gain. More is faster.

        Raises:
            TierwiseError: no set costs so little, or none was found in a minute.
        """
        if budget is not None and budget < self.least_cost:
            least = numbers.cents_text(numbers.least_budget_text(self.least_cost))
            raise TierwiseError(
                f"--budget: the least that databases must have costs {least} "
                f"{numbers.per_month_unit(self._currency)}",
                "give a greater budget, or a greater p99 in --weights",
            )
        worth = self._undominated(gains)
        if budget is None:
            return self._choice(
                most_preferred_options(np.where(worth, gains, -np.inf), self._starts), gains, 0.0
            )
        budget += _ROUNDING  # less than any two costs differ by
        near = solve_relaxed(self._costs, gains, self._starts, budget)
        if (more := near.most - near.gain) <= gap * near.gain:
            return self._choice(near.options, gains, more / near.gain if more > 0 else 0.0)
        worth &= near.keep
        open_ = worth & (np.add.reduceat(worth, self._starts) > 1)[self._owner]
        preferred = worth.astype(np.float64)
        absolute_gap = 0.0
        if open_.any():
            left = budget - float(self._costs[worth & ~open_].sum())
            solution = self._solved(gains[open_], np.flatnonzero(open_), left, gap)
            preferred[open_] = solution.x
            absolute_gap = float(solution.mip_gap or 0.0) * abs(float(gains[open_] @ solution.x))
        choice = self._choice(most_preferred_options(preferred, self._starts), gains, 0.0)
        absolute_gap /= abs(choice.gain) or 1.0
        return replace(choice, gap=absolute_gap if absolute_gap > _ROUNDING else 0.0)

    def _solved(self, gains: Floats, options: NDArray[np.int64], budget: float, gap: float) -> Any:
        """The solver's answer for databases whose option is still open: 1 for each option of the best set."""
        owners, owner = np.unique(self._owner[options], return_inverse=True)
        count = len(options)
        one_each = self._sparse.csr_array((np.ones(count), (owner, np.arange(count))), (len(owners), count))
        with _silenced_solver():
            solution = self._optimize.milp(
                -_SCALE / max(float(np.abs(gains).max()), 1e-12) * gains,
                integrality=np.ones(count),
                bounds=self._optimize.Bounds(0, 1),
                constraints=[
                    self._optimize.LinearConstraint(one_each, 1, 1),
                    self._optimize.LinearConstraint(self._costs[options][np.newaxis, :], -np.inf, budget),
                ],
                options={"mip_rel_gap": gap, "time_limit": _MOST_S},
            )
        if solution.x is None:
            raise TierwiseError(
                f"the best set of moves: {solution.message}", "give fewer devices or recordings"
            )
        return solution

    def gain(self, options: Sequence[int], gains: Floats) -> float:
        """Gain of a set, by the gains of every option."""
        return float(gains[self._starts + np.array(options)].sum())

    def _undominated(self, gains: Floats) -> NDArray[np.bool_]:
        """Options that no option of the same database equals for less, or for the same."""
        order = np.lexsort((-gains, self._costs, self._owner))  # by database, cost, greatest gain first
        ranks = np.unique(gains, return_inverse=True)[1][order]
        height = self._owner[order] * (len(gains) + 1) + ranks  # above all of the databases before
        most = np.maximum.accumulate(height)
        kept = np.zeros(len(gains), dtype=np.bool_)
        kept[order] = np.append(True, height[1:] > most[:-1])
        return kept

    def _choice(self, chosen: NDArray[np.int64], gains: Floats, gap: float) -> ChosenOptions:
        """The set of these options, which are numbers among all."""
        options = tuple(int(number) for number in chosen - self._starts)
        return ChosenOptions(options, self.gain(options, gains), money_sum(self._costs[chosen]), gap)


@contextmanager
def _silenced_solver() -> Iterator[None]:
    """Keep standard output clean: HiGHS of scipy 1.17.1 prints lines there that no option stops."""
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # its lines are in the buffer of C's standard output
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
