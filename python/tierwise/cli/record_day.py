"""``tierwise record --every``: a day of short recordings in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tierwise.capture.day import DayRecorder
from tierwise.capture.schedule import BurstCost, DayPlan, Taken
from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import Target
from tierwise.cli import printing
from tierwise.cli.options import progress_console
from tierwise.cli.output import Format, show
from tierwise.model.errors import FailedCheckError
from tierwise.predict.timeline import timeline_of
from tierwise.recording import Day, remove_recording
from tierwise.report.recording.day import day_document


def record_day(
    pid: int,
    find: Callable[[int], Target],
    out: Path,
    plan: DayPlan,
    dsn: Dsn | None,
    format: Format,
) -> None:
    """Record by the plan, and print a line for each recording, gap and change of the schedule.

    In another format than text, these lines go to stderr, and stdout gets the timeline of the day.

    Raises:
        TierwiseError: if the first recording cannot be taken.
        FailedCheckError: if there is no recording in the end.
    """
    console = printing.console(stderr=format is not Format.TEXT)
    with progress_console(to_stderr=True).status("attaching", spinner="line") as status:
        day = DayRecorder(
            pid,
            find,
            out,
            plan,
            progress=status.update,
            note=lambda line: _print(console, line),
            dsn=dsn,
        )
        try:
            day.run()
        finally:
            if not any(out.iterdir()):
                remove_recording(out)
    if not day.taken:
        raise FailedCheckError("nothing was recorded", "let it run until the first recording has ended")
    for line in _summary(day.taken, day.elapsed_s):
        _print(console, line)
    if format is Format.TEXT:
        printing.echo(f"day: {out}")
        return
    timeline = timeline_of(Day.open(out))
    show(day_document(timeline), {"day": timeline.model_dump(mode="json")}, "day", format)


def _summary(taken: list[Taken], elapsed_s: float) -> list[str]:
    """Size and cost of a day, with the arithmetic of the cost."""
    cost = BurstCost.of(taken)
    recorded_share = sum(recording.recorded_s for recording in taken) / elapsed_s
    cpu_share = sum(recording.cpu_s for recording in taken) / elapsed_s / (os.cpu_count() or 1)
    size_bytes = sum(recording.size_bytes for recording in taken)
    measured = sum(recording.rate_ratio is not None for recording in taken)
    ends = (
        f" (95 %: {100 * cost.low:.1f} to {100 * cost.high:.1f} %, {measured} recordings)"
        if cost.low is not None and cost.high is not None
        else f" (measured in {measured} of {len(taken)} recordings)"
    )
    return [
        f"{len(taken)} recordings in {elapsed_s:,.0f} s, {size_bytes / 1e6:,.1f} MB",
        f"cost: {100 * recorded_share * cost.share:.2f} % of the day's throughput: bursts, "
        f"{100 * recorded_share:.2f} % of the time, lost {100 * cost.share:.1f} % of the rate{ends}",
        f"the recorder used {100 * cpu_share:.2f} % of the processors",
    ]


def _print(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)
