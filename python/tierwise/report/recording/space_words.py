"""Space of files in words: what a role may need and why, and when its device is full."""

from __future__ import annotations

from tierwise.advise import Advice
from tierwise.advise.filling import Filling
from tierwise.advise.space import RoleSpace
from tierwise.model.names import capitalized
from tierwise.report import numbers
from tierwise.report.study.moves import ROLE_NAMES, join

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def space_sentences(advice: Advice) -> list[str]:
    """What the recommended placement has to hold, where settings let files grow, and what fills a device."""
    option = advice.decision.option
    moved = {**option.placement, **option.taken_along}
    spaces = [one for one in advice.spaces if one.role in moved]
    return [
        *(_space_sentence(one) for one in spaces if one.parts and one.size_bytes > one.now_bytes),
        *(_filling_sentence(one) for one in advice.filling),
    ]


def _space_sentence(space: RoleSpace) -> str:
    parts = join([f"{part.what} {numbers.size(part.size_bytes)}" for part in space.parts])
    return (
        f"{capitalized(ROLE_NAMES[space.role])} may need {numbers.size(space.size_bytes)}, "
        f"now {numbers.size(space.now_bytes)}: {parts}."
    )


def _filling_sentence(one: Filling) -> str:
    return (
        f"{capitalized(one.when)}, {ROLE_NAMES[one.role]} fills the free {numbers.size(one.free_bytes)} of "
        f"{one.device} after {_span(one.full_after_s)} at the predicted rate, and the server stops."
    )


def _span(value_s: float) -> str:
    """A time that a person plans with: ``7 minutes``, ``5 hours``, ``12 days``."""
    for unit_s, name in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if value_s >= 2 * unit_s:
            return f"{value_s / unit_s:.0f} {name}s"
    return f"{value_s:.0f} s"
