"""Warnings as blocks: at most three in sight, each with its placement, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tierwise.advise import Advice, Caution
from tierwise.model.placement import Role
from tierwise.report.document import Block, Section, Tone, texts
from tierwise.report.recording.prediction_words import moving

MOST_IN_SIGHT = 3
"""Warnings that are shown at once."""
_MOST_PLACES = 2


def advice_cautions(advice: Advice) -> list[Block]:
    """The warnings of an advice, and what another model says, which is always folded."""
    return caution_blocks(map(_placed, advice.warnings), map(_placed, advice.cross_checks))


def caution_blocks(warnings: Iterable[str], folded: Iterable[str] = ()) -> list[Block]:
    """The first warnings in sight, the others folded.

    Args:
        warnings: by :func:`warning_sentence`, those that matter most first.
        folded: further ones that are never in sight.
    """
    said, more = list(warnings), list(folded)
    shown, rest = said[:MOST_IN_SIGHT], [*said[MOST_IN_SIGHT:], *more]
    blocks: list[Block] = texts(shown, Tone.WARNING)
    if rest:
        title = f"{len(rest)} more warning{'s' if len(rest) > 1 else ''}"
        blocks.append(Section(title, texts(rest, Tone.WARNING), folded=True))
    return blocks


def warning_sentence(text: str, where: str = "") -> str:
    """``Warning, the log to ssd-nvme-dc: …``, with what it is about."""
    return f"Warning{f', {where}' if where else ''}: {text.rstrip('.')}."


def _placed(one: Caution) -> str:
    return warning_sentence(one.text, _places(one.placements))


def _places(placements: Sequence[Mapping[Role, str]]) -> str:
    """``with the log to ram, or …``; empty for a warning of all placements."""
    named = [moving(one) for one in placements[:_MOST_PLACES]]
    more = len(placements) - len(named)
    return " or ".join([*named, *([f"{more} more placements"] if more else [])])
