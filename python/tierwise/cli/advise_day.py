"""``tierwise advise`` of a day: the advice for its peak, its mean and its worst hour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tierwise.advise import Advice, DayAdvice, advise_day
from tierwise.cli.output import Format, show
from tierwise.predict.timeline import timeline_of
from tierwise.recording import Day
from tierwise.report.recording.day import day_advice_document


def show_day_advice(folder: Path, ask: Callable[[Path], Advice], format: Format) -> DayAdvice:
    """Print the advice for each load of a day.

    Args:
        folder: of the day.
        ask: gives the advice for one recording.
        format: of the output.

    Returns:
        The advice for each load.
    """
    advised = advise_day(timeline_of(Day.open(folder)), lambda name: ask(folder / name))
    show(
        day_advice_document(advised),
        {"day_advice": advised.model_dump(mode="json")},
        "day-advice",
        format,
    )
    return advised
