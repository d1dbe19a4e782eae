"""The options that a best set can have: all others are ruled out before the solver starts.

A Lagrange multiplier prices the budget. The relaxed problem then bounds the gain of every set that has a
given option. If a known set gains more, no best set has the option (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, chapter 11). Of 5,000 options of 1,000 databases, some 100 remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tierwise.model.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEPS = 60
"""Halvings of the multiplier's range."""
_TOLERANCE = 1e-9
"""Of gains: the rounding of their sums."""


def core(costs: Floats, gains: Floats, starts: NDArray[np.int64], budget: float) -> NDArray[np.bool_]:
    """Whether an option may be in a best set.

    Args:
        costs: of every option, database after database.
        gains: likewise.
        starts: index of the first option of each database.
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
    most = float(best.sum()) + price * budget
    spent = cheapest_best(price)
    held = best + price * spent
    least = _filled(costs, gains, (spent, held), sizes, budget)
    keep: NDArray[np.bool_] = np.repeat(best, sizes) - values <= most - least + _TOLERANCE
    return keep


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
    costs: Floats, gains: Floats, held: tuple[Floats, Floats], sizes: NDArray[np.int64], budget: float
) -> float:
    """Gain of a set with these costs and gains after its rest of the budget is spent on exchanges."""
    spent, gained = held
    owner = np.repeat(np.arange(len(sizes)), sizes)
    while True:
        more = gains - gained[owner]
        allowed = costs - spent[owner] <= budget - spent.sum()
        best = int(np.argmax(np.where(allowed, more, -np.inf)))
        if not allowed[best] or more[best] <= _TOLERANCE:
            return float(gained.sum())
        spent[owner[best]], gained[owner[best]] = costs[best], gains[best]
