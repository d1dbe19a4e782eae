"""``tierwise recording``: lists, shows and redacts recordings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tierwise import recording
from tierwise.cli.output import FormatOption, OutputFormat, output_file_option, print_result, print_warning
from tierwise.cli.printing import print_text
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.recording import Recording, RecordingMetadata, clients_sentence, open_recordings_of_folder
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.document import Block, Cell, Text, Tone, empty_table, figure_cell
from tierwise.report.recording.perfetto import LIMIT, perfetto_trace
from tierwise.report.recording.prediction_report import warning_texts
from tierwise.report.recording.profile_report import device_lines
from tierwise.report.recording.recording_report import checks_table

Source = Annotated[Path, typer.Argument(metavar="RECORDING", help="folder that tierwise record wrote")]

app = typer.Typer(no_args_is_help=True, help="List, show, redact and export recordings.")


class ListedRecording(RecordingMetadata):
    """Metadata of one of several recordings."""

    path: str
    """Its folder."""


@app.command("list")
def list_recordings(
    directory: Annotated[Path, typer.Argument(help="directory that contains recordings")] = Path(),
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """List the recordings in a directory."""
    if not directory.is_dir():
        raise TierwiseError(f"{directory} is no directory", "name one that contains recordings")
    if (directory / recording.ABOUT_FILE).is_file():
        raise TierwiseError(
            f"{directory} is a recording", "name the directory that contains it, or: tierwise recording show"
        )
    opened, errors = open_recordings_of_folder(directory, partial(Recording.open, whole=True))
    if errors and not opened:
        raise errors[0]
    for left_out in errors:
        print_warning(f"left out: {left_out}")
    listing = empty_table(["engine", "started"], ["duration", "bursts", "size"], names=["recording"])
    for source in opened:
        listing.add(
            Cell(source.path.name),
            _engine(source.about),
            source.about.started_at,
            figure_cell(source.about.duration_s, numbers.seconds_text),
            figure_cell(len(source.about.bursts), numbers.count_text),
            figure_cell(source.size_bytes, numbers.size_text),
        )
    every = [ListedRecording(path=str(source.path), **dict(source.about)) for source in opened]
    shown: list[Block] = (
        [listing]
        if opened or format is OutputFormat.CSV
        else [Text(f"No recording directly in {directory}.")]
    )
    print_result(shown, {"recordings": every}, "recordings", format)


@app.command("show")
def show_recording(
    source: Source,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Print the metadata of a recording: engine, machine, bursts, devices, checks, warnings."""
    opened = Recording.open(source, whole=True)
    about = opened.about
    blocks: list[Block] = [
        Text(
            f"{_engine(about)}, recorded for {numbers.seconds_text(about.duration_s)} from "
            f"{about.started_at}",
            Tone.HEADLINE,
        ),
        Text(
            f"{numbers.counted_noun(len(about.bursts), 'burst')}, "
            f"{numbers.counted_noun(about.losses.recorded_events, 'event')}, "
            f"{numbers.count_text(about.losses.lost_events)} lost, {numbers.size_text(opened.size_bytes)}."
        ),
        Text(
            f"{about.machine.processor}, {numbers.counted_noun(about.machine.cores, 'core')}, "
            f"{numbers.size_text(about.machine.memory_bytes)} of memory, {about.machine.kernel}."
        ),
        *(Text(line) for line in device_lines(about.devices)),
        *([Text(f"{clients_sentence(about.clients)}.")] if about.clients else []),
    ]
    checks = checks_table(about.checks)
    print_result([*blocks, checks, *warning_texts(opened.warnings)], about, "recording", format)


@app.command("redact")
def redact_recording(
    source: Source,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="folder for the new recording: empty or new")
    ],
) -> None:
    """Write a recording without paths and names, which gives the same predictions."""
    recording.redact_recording(source, output)
    print_text(
        f"{output}: no paths, mounts or names of programs; docs/concepts/privacy.md tells what is left"
    )


@app.command("export")
def export_trace(
    source: Source,
    perfetto: Annotated[
        Path,
        output_file_option(
            "--perfetto", help="file for a trace that ui.perfetto.dev opens, such as trace.json"
        ),
    ],
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, max=5_000_000, help="most events, from the start of the recording"),
    ] = LIMIT,
) -> None:
    """Write a recording as a trace: states of threads, calls on files, requests to devices."""
    made = perfetto_trace(Recording.open(source, whole=True), limit)
    file = write_output_file(perfetto, made.text.encode())
    cut = ""
    if made.events < made.of_events:
        shown, total = numbers.seconds_text(made.shown_s), numbers.count_text(made.of_events)
        cut = f" of {total}, the first {shown}; --limit NUMBER writes more"
    print_text(f"{file}: {numbers.counted_noun(made.events, 'event')}{cut}")


def _engine(about: RecordingMetadata) -> str:
    return f"{about.engine} {about.engine_version or ''}".strip()
