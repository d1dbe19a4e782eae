"""``tierwise recording``: lists, shows and redacts recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise import recording
from tierwise.cli.output import Format, FormatOption, file_option, show, warn
from tierwise.cli.printing import echo
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.recording import About, Recording, clients_sentence, open_each
from tierwise.recording.outputs import write_file
from tierwise.report.document import Block, Cell, Text, Tone, figure, table
from tierwise.report.recording.prediction import warning_texts
from tierwise.report.recording.profile import device_lines
from tierwise.report.recording.recorded import checks_table
from tierwise.report.recording.trace import LIMIT, trace

Source = Annotated[Path, typer.Argument(metavar="RECORDING", help="folder that tierwise record wrote")]

app = typer.Typer(no_args_is_help=True, help="List, show, redact and export recordings.")


class ListedRecording(About):
    """Metadata of one of several recordings."""

    path: str
    """Its folder."""


@app.command("list")
def list_(
    directory: Annotated[Path, typer.Argument(help="directory that contains recordings")] = Path(),
    format: FormatOption = Format.TEXT,
) -> None:
    """List the recordings in a directory."""
    if not directory.is_dir():
        raise TierwiseError(f"{directory} is no directory", "name one that contains recordings")
    if (directory / recording.ABOUT_FILE).is_file():
        raise TierwiseError(
            f"{directory} is a recording", "name the directory that contains it, or: tierwise recording show"
        )
    opened, errors = open_each(directory, Recording.open)
    if errors and not opened:
        raise errors[0]
    for left_out in errors:
        warn(f"left out: {left_out}")
    listing = table(["engine", "started"], ["duration", "bursts", "size"], names=["recording"])
    for source in opened:
        listing.add(
            Cell(source.path.name),
            _engine(source.about),
            source.about.started_at,
            figure(source.about.duration_s, numbers.seconds),
            figure(len(source.about.bursts), numbers.count),
            figure(source.size_bytes, numbers.size),
        )
    every = [ListedRecording(path=str(source.path), **dict(source.about)) for source in opened]
    shown: list[Block] = (
        [listing] if opened or format is Format.CSV else [Text(f"No recording directly in {directory}.")]
    )
    show(shown, {"recordings": every}, "recordings", format)


@app.command("show")
def show_(
    source: Source,
    format: FormatOption = Format.TEXT,
) -> None:
    """Print the metadata of a recording: engine, machine, bursts, devices, checks, warnings."""
    opened = Recording.open(source, whole=True)
    about = opened.about
    blocks: list[Block] = [
        Text(
            f"{_engine(about)}, recorded for {numbers.seconds(about.duration_s)} from {about.started_at}",
            Tone.HEADLINE,
        ),
        Text(
            f"{numbers.counted(len(about.bursts), 'burst')}, "
            f"{numbers.counted(about.losses.recorded_events, 'event')}, "
            f"{numbers.count(about.losses.lost_events)} lost, {numbers.size(opened.size_bytes)}."
        ),
        Text(
            f"{about.machine.processor}, {numbers.counted(about.machine.cores, 'core')}, "
            f"{numbers.size(about.machine.memory_bytes)} of memory, {about.machine.kernel}."
        ),
        *(Text(line) for line in device_lines(about.devices)),
        *([Text(f"{clients_sentence(about.clients)}.")] if about.clients else []),
    ]
    checks = checks_table(about.checks)
    show([*blocks, checks, *warning_texts(opened.warnings)], about, "recording", format)


@app.command()
def redact(
    source: Source,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="folder for the new recording: empty or new")
    ],
) -> None:
    """Write a recording without paths and names, which gives the same predictions."""
    recording.redact(source, output)
    echo(f"{output}: no paths, mounts or names of programs; docs/concepts/privacy.md tells what is left")


@app.command()
def export(
    source: Source,
    perfetto: Annotated[
        Path,
        file_option("--perfetto", help="file for a trace that ui.perfetto.dev opens, such as trace.json"),
    ],
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, max=5_000_000, help="most events, from the start of the recording"),
    ] = LIMIT,
) -> None:
    """Write a recording as a trace: states of threads, calls on files, requests to devices."""
    made = trace(Recording.open(source, whole=True), limit)
    file = write_file(perfetto, made.text.encode())
    cut = ""
    if made.events < made.of_events:
        shown, total = numbers.seconds(made.shown_s), numbers.count(made.of_events)
        cut = f" of {total}, the first {shown}; --limit NUMBER writes more"
    echo(f"{file}: {numbers.counted(made.events, 'event')}{cut}")


def _engine(about: About) -> str:
    return f"{about.engine} {about.engine_version or ''}".strip()
