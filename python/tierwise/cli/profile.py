"""``tierwise profile``: where the time of a recording went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tierwise.breakdown import Breakdown, break_down
from tierwise.cli.output import print_parts, print_verdict, write_file
from tierwise.errors import TierwiseError
from tierwise.predict import Predictor
from tierwise.recording import Recording
from tierwise.report.charts.profile import profile_chart
from tierwise.report.charts.render import to_png
from tierwise.report.numbers import size
from tierwise.report.profile import device_lines, profile_page, profile_parts
from tierwise.savings import Savings, savings
from tierwise.verdict import Verdict, not_replayed, verdict


def profile(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote")],
    *,
    saved: Annotated[
        bool, typer.Option("--savings/--no-savings", help="replay what removing each role would save at most")
    ] = True,
    html: Annotated[Path | None, typer.Option(help="file to write as one page that opens offline")] = None,
    png: Annotated[Path | None, typer.Option(help="file to draw the chart into")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say where the time went, by thread class and role, and what each role's removal would save at most."""
    opened = Recording.open(recording)
    found = break_down(recording)
    gains, judged = _replayed(recording, found) if saved else (Savings(), None)
    if as_json:
        answer = {
            "breakdown": found.model_dump(mode="json", by_alias=True),
            "savings": gains.model_dump(mode="json"),
            "warnings": opened.warnings,
            "devices": [device.model_dump(mode="json") for device in opened.about.devices],
            "data_directory_bytes": opened.about.data_directory_bytes,
            "verdict": judged and judged.described,
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        print_parts(list(profile_parts(found, gains, opened.warnings)))
        for line in device_lines(opened.about.devices):
            typer.echo(line)
        if opened.about.data_directory_bytes is not None:
            typer.echo(f"Data directory: {size(opened.about.data_directory_bytes)}.")
        if judged is not None:
            print_verdict(judged)
    if html is not None:
        page = profile_page(recording.resolve().name, found, gains, opened.warnings)
        typer.echo(f"page: {write_file(html, page.encode())}", err=True)
    if png is not None:
        typer.echo(f"chart: {write_file(png, to_png(profile_chart(found)))}", err=True)


def _replayed(recording: Path, found: Breakdown) -> tuple[Savings, Verdict]:
    """What removal saves, and the verdict; why not, if nothing can be replayed: the rest stands without."""
    try:
        predictor = Predictor.open(recording)
    except TierwiseError as error:
        return Savings(refused=str(error)), not_replayed(error)
    asked = [
        row.role for row in found.roles if row.role is not None and (row.reads or row.writes or row.flushes)
    ]
    return savings(predictor, asked), verdict(predictor)
