"""The placement to adopt first: of the faster ones that cannot be told from the best, the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tierwise.model.placement import price_order, recommended
from tierwise.model.statistics import Interval, Verdict
from tierwise.report.study.moves import Moved, roles_of

Compare = Callable[[str, str], Interval | None]
"""Gives the speed-up of one placement over another; ``None`` if it is not known."""


@dataclass(frozen=True)
class Candidate:
    """A placement beside the baseline, of whole runs or of one lap.

    Attributes:
        placement: its name.
        speedup: over the baseline; ``None`` if it is not known.
        moved: roles that the baseline keeps elsewhere.
        new_per_month: price of the devices that these are on; ``None`` without one.
        in_memory: whether files that must last are kept in memory.
    """

    placement: str
    speedup: Interval | None
    moved: Moved
    new_per_month: float | None = None
    in_memory: bool = False

    @property
    def saving_per_role(self) -> float:
        """Share of the baseline's time that it saves per moved role."""
        return (1 - 1 / self.speedup.estimate) / max(1, len(roles_of(self.moved))) if self.speedup else 0.0


def first_of(candidates: Sequence[Candidate], compare: Compare) -> tuple[str | None, list[str]]:
    """The placement to adopt first, and the others that cannot be told from the best.

    The best saves most time per moved role. A placement cannot be told from it if the intervals of their
    speed-ups overlap, or if that of the best over it includes 1. Of these, the cheapest comes first, by the
    rule of ``advise``.

    Args:
        candidates: every placement but the baseline.
        compare: over the same repeats.

    Returns:
        ``None`` and nothing if no placement is faster than the baseline.
    """
    faster = [one for one in candidates if one.speedup and one.speedup.verdict is Verdict.FASTER]
    best = max(faster, key=lambda one: one.saving_per_role, default=None)
    if best is None:
        return None, []

    def alike(one: Candidate) -> bool:
        if one is best or best.new_per_month is None:
            return one is best  # nothing is known to be cheaper than what has no price
        step = compare(best.placement, one.placement)
        return _overlap(best.speedup, one.speedup) or step is None or step.verdict is not Verdict.FASTER

    by_price = sorted(faster, key=_by_price)
    first = recommended(by_price, alike)
    names = [one.placement for one in by_price if one is not first and alike(one)]
    return (first.placement if first else None), names


def _by_price(one: Candidate) -> tuple[bool, float, int, float]:
    moves = len(roles_of(one.moved))
    return price_order(one.new_per_month, moves, one.saving_per_role, one.in_memory)


def _overlap(best: Interval | None, other: Interval | None) -> bool:
    if best is None or other is None or best.low is None or other.high is None:
        return True
    return best.low <= other.high
