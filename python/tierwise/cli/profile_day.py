"""``tierwise profile`` of a day: its timeline."""

from __future__ import annotations

from pathlib import Path

from tierwise.cli.output import Format, show, write_file
from tierwise.cli.printing import echo
from tierwise.model.errors import TierwiseError
from tierwise.predict.timeline import timeline_of
from tierwise.recording import Day
from tierwise.report.recording.day import day_document, day_page
from tierwise.report.render import to_html_page


def profile_day(folder: Path, html: Path | None, png: Path | None, format: Format) -> None:
    """Show the timeline of a folder of recordings.

    Raises:
        TierwiseError: for a file to draw into: a day has several charts.
    """
    if png is not None:
        raise TierwiseError("--png: the timeline of a day has several charts", "give --html")
    day = timeline_of(Day.open(folder))
    show(day_document(day), {"day": day.model_dump(mode="json")}, "day", format)
    if html is not None:
        echo(f"page: {write_file(html, to_html_page(day_page(day)).encode())}", err=True)
