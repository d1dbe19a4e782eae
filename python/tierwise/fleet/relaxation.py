"""The options that a best set can have: all others are ruled out before the solver starts.

A Lagrange multiplier prices the budget. The relaxed problem then bounds the gain of every set that has a
given option. If a known set gains more, no best set has the option (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, chapter 11). Of 5,000 options of 1,000 databases, some 100 remain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierwise.model.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEPS = 60
"""Halvings of the multiplier's range."""
_TOLERANCE = 1e-9
"""Of gains: the rounding of their sums."""


@dataclass(frozen=True)
class Relaxed:
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


def relaxed(costs: Floats, gains: Floats, starts: NDArray[np.int64], budget: float) -> Relaxed:
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
        found: Floats = np.minimum.reduceat(np.where(values >= best, costs, np.inf), starts)
        return found

    price = _price(lambda one: float(cheapest_best(one).sum()) <= budget)
    values = gains - price * costs
    best = np.maximum.reduceat(values, starts)
    each_best = np.repeat(best, sizes)
    most = float(best.sum()) + price * budget
    preferred = np.where(values >= each_best, -costs, -np.inf)
    options = _filled(costs, gains, first_best(preferred, starts), sizes, budget)
    gain = float(gains[options].sum())
    return Relaxed(options, gain, most, each_best - values <= most - gain + _TOLERANCE)


def first_best(preferred: Floats, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the most preferred option of each database, the first of equals."""
    sizes = np.diff(np.append(starts, len(preferred)))
    best = np.repeat(np.maximum.reduceat(preferred, starts), sizes)
    candidates = np.flatnonzero(preferred == best)
    found: NDArray[np.int64] = candidates[np.searchsorted(candidates, starts)]
    return found


def _price(affordable: Callable[[float], bool]) -> float:
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


def _filled(
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
