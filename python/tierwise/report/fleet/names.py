"""Moves of a fleet by name."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.fleet import DatabaseMove
from tierwise.report.study.moves import ROLE_NAMES, join

_MOST_NAMED = 8
"""Moves that a sentence names at most."""


def in_words(move: DatabaseMove) -> str:
    """``the log of shop to ssd-nvme-dc``."""
    return f"{ROLE_NAMES[move.role]} of {move.database} to {move.device}"


def some(names: Sequence[str]) -> str:
    """All names, or the first few and the number of the others."""
    more = len(names) - _MOST_NAMED
    return join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMED])} and {more} more"
