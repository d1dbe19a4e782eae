"""``tierwise profile``: the time breakdown of a recording, of a day, or as OpenMetrics text."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import Names
from tierwise.cli.output import OutputFormat, Png, output_file_option, print_result, write_page
from tierwise.cli.printing import print_text
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.numbers import size_text
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.predict.time_savings import TimeSavings, time_savings_by_relation, time_savings_by_role
from tierwise.predict.timeline import timeline_of
from tierwise.predict.usability import Usability, judge_usability, usability_without_replay
from tierwise.recording import Day, Observation, Recording, open_recorded_source
from tierwise.recording.breakdown import Breakdown
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.charts.chart_style import to_png
from tierwise.report.document import Block, Text
from tierwise.report.recording.day_report import day_document, day_page
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.openmetrics import openmetrics_text
from tierwise.report.recording.profile_report import profile_chart, profile_document, profile_page
from tierwise.report.recording.recording_report import (
    add_usability_verdict,
    observation_document,
    observation_extent,
)
from tierwise.report.recording.tables_report import buffer_use, relation_row, relations_document


class ProfileFormat(StrEnum):
    """Output format of a profile."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    OPENMETRICS = "openmetrics"


def latest_recording(recording: Path) -> Path:
    """The recording, or the latest of a day: a gauge has one value."""
    if not Day.is_at(recording):
        return recording
    latest = Day.open(recording).recordings[-1].path
    print_text(f"metrics of the day's latest recording: {latest}", err=True)
    return latest


def openmetrics_of(
    path: Path,
    opened: Recording | Observation,
    breakdown: Breakdown,
    saved: TimeSavings,
    rate_per_s: float | None,
) -> str:
    """The metrics of a profile, labelled with the engine and the folder's name."""
    about = opened.about
    transactions, counted_s = (
        (opened.transactions, opened.counted_s)
        if isinstance(opened, Observation)
        else (about.transactions, about.duration_s)
    )
    if rate_per_s is None and transactions is not None and counted_s > 0:
        rate_per_s = transactions / counted_s
    labels = {"engine": about.engine, "recording": path.resolve().name}
    return openmetrics_text(breakdown, saved, labels, rate_per_s, about.started_at)


def profile_day(folder: Path, html: Path | None, png: Path | None, format: OutputFormat) -> None:
    """Show the timeline of a folder of recordings."""
    if png is not None:
        raise TierwiseError("--png: the timeline of a day has several charts", "give --html")
    day = timeline_of(Day.open(folder))
    print_result(day_document(day), {"day": day}, "day", format)
    if html is not None:
        write_page(html, day_page(day), err=True)


class ProfiledUnit(StrEnum):
    """What a profile lists."""

    FILE = "file"


def profile(
    recording: Annotated[
        Path, typer.Argument(help="folder that tierwise record wrote; of a day: its timeline")
    ],
    *,
    saved: Annotated[
        bool,
        typer.Option(
            "--savings/--no-savings", help="simulate the upper bound of what each role's device costs"
        ),
    ] = True,
    by: Annotated[
        ProfiledUnit | None,
        typer.Option(help="file: list tables and indexes, and what removing each would save at most"),
    ] = None,
    names: Names = None,
    html: Annotated[
        Path | None, output_file_option("--html", help="file to write as one page that opens offline")
    ] = None,
    png: Png = None,
    format: Annotated[ProfileFormat, typer.Option(help="format of the output")] = ProfileFormat.TEXT,
) -> None:
    """Show where the time went, by thread class and role, and what removing each role would save at most."""
    if html is not None or png is not None:
        require_extra("report", "--html" if html is not None else "--png")
    if names is not None and by is None:
        raise TierwiseError("--names: names are for tables and indexes", "add --by file")
    if by is not None:
        if format is ProfileFormat.OPENMETRICS:
            raise TierwiseError("--format openmetrics: metrics are of roles", "leave out --by file")
        chart = next((name for name, file in {"--html": html, "--png": png}.items() if file), None)
        if chart:
            raise TierwiseError(f"{chart}: --by file is a table only", f"leave out {chart}")
        _profile_by_file(recording, names, OutputFormat(format), saved=saved)
        return
    if format is ProfileFormat.OPENMETRICS:
        recording = latest_recording(recording)
    elif Day.is_at(recording):
        profile_day(recording, html, png, OutputFormat(format))
        return
    opened = open_recorded_source(recording)
    breakdown = opened.break_down()
    gains, judged, rate_per_s = _replayed(recording, breakdown) if saved else (TimeSavings(), None, None)
    data_bytes = opened.about.data_directory_bytes
    content = {
        "breakdown": breakdown,
        "savings": gains,
        "warnings": opened.warnings,
        "devices": opened.about.devices,
        "data_directory_bytes": data_bytes,
        "usability": judged and judged.fields,
    }
    document: list[Block] = (
        observation_document(opened, gains)
        if isinstance(opened, Observation)
        else profile_document(breakdown, gains, opened.warnings, opened.about.devices)
    )
    document += [Text(f"Data directory: {size_text(data_bytes)}.")] if data_bytes is not None else []
    unusable = doubt_texts(judged.usable, judged.ordered) if judged is not None else []
    document = document if judged is None else add_usability_verdict(judged, document)
    if format is ProfileFormat.OPENMETRICS:
        print_text(openmetrics_of(recording, opened, breakdown, gains, rate_per_s), nl=False)
    else:
        print_result(document, content, "profile", OutputFormat(format))
    if html is not None:
        observed = observation_extent(opened) if isinstance(opened, Observation) else None
        page = profile_page(recording.resolve().name, breakdown, gains, opened.warnings, observed, unusable)
        write_page(html, page, err=True)
    if png is not None:
        print_text(f"chart: {write_output_file(png, to_png(profile_chart(breakdown)))}", err=True)


def _profile_by_file(recording: Path, names: Path | None, format: OutputFormat, *, saved: bool) -> None:
    opened = open_recorded_source(recording)
    if isinstance(opened, Observation):
        raise TierwiseError(
            f"{recording}: an observation does not tell files apart", "record with tierwise record"
        )
    relations = opened.relations(names)
    predictor = Predictor.open(recording, names=names) if saved else None
    gains = time_savings_by_relation(predictor, relations) if predictor else {}
    judged = judge_usability(predictor) if predictor else None
    values = {
        "relations": [relation_row(row, gains, relations.buffer) for row in relations.rows],
        "buffer": buffer_use(relations.buffer),
        "unnamed": relations.unnamed,
        "warnings": opened.warnings,
        "usability": judged and judged.fields,
    }
    document = relations_document(relations, gains, opened.warnings)
    if judged is not None:
        document = add_usability_verdict(judged, document)
    print_result(document, values, "profile-by-file", format)


def _replayed(recording: Path, breakdown: Breakdown) -> tuple[TimeSavings, Usability, float | None]:
    """Savings by removal, the verdict and transactions a second; if replay is impossible, the reason."""
    try:
        predictor = Predictor.open(recording)
    except TierwiseError as error:
        return TimeSavings(refused=str(error)), usability_without_replay(error), None
    run = predictor.run
    rate_per_s = None if run.once or run.unit != "transactions" else run.rate_per_s
    return (
        time_savings_by_role(predictor, list(_roles_with_device_load(predictor, breakdown))),
        judge_usability(predictor),
        rate_per_s,
    )


def _roles_with_device_load(predictor: Predictor, breakdown: Breakdown) -> Iterator[Role]:
    """Roles with requests; of an observation, which has none, those with a load by the server's counters."""
    if predictor.run.from_waits:
        yield from predictor.as_recorded.io
    for row in breakdown.roles:
        if row.role is not None and (row.reads or row.writes or row.flushes):
            yield row.role
