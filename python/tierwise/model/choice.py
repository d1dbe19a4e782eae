"""The rule of every recommendation: of the placements that cannot be told apart, the cheapest.

One that keeps files in memory comes after all that do not, since a power cut or a restart loses these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def recommended(by_price: Iterable[T], alike: Callable[[T], bool]) -> T | None:
    """The first placement, in the order of :func:`price_order`, that cannot be told from the best one.

    Advice and the reports of studies both choose by it.

    Args:
        by_price: placements, cheapest first; those after the answer are not asked for.
        alike: whether a placement cannot be told from the best one.
    """
    return next(filter(alike, by_price), None)


def price_order(
    cost_per_month: float | None, moves: int, gain: float, in_memory: bool = False
) -> tuple[bool, float, int, float]:
    """Sort key: the cheapest first; of equally cheap ones that with the fewest moves, then with most gain.

    Args:
        cost_per_month: in one currency; an unknown one comes last.
        moves: number of moved roles.
        gain: of any kind that is comparable.
        in_memory: whether files that must last are kept in memory.
    """
    return in_memory, math.inf if cost_per_month is None else cost_per_month, moves, -gain
