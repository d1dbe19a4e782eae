"""``tierwise device``: profiles, their simulated figures, and measurements of real devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli import probe, simulate
from tierwise.cli.options import OutputFile
from tierwise.cli.output import Format, FormatOption, show, write_file
from tierwise.cli.printing import echo
from tierwise.device_models import profiles, simulation
from tierwise.device_models.profiles import import_drive
from tierwise.report.devices import devices_document, imported_document
from tierwise.report.document import Block, Text

app = typer.Typer(no_args_is_help=True, help="List, show, simulate, import and probe devices.")


@app.command("list")
def list_(format: FormatOption = Format.TEXT) -> None:
    """List the device profiles that ship with tierwise, with figures found by simulating each."""
    summaries = simulation.summarize([profiles.load(name) for name in profiles.names()])
    content = [summary.model_dump(mode="json") for summary in summaries]
    show(devices_document(summaries), {"devices": content}, "devices", format)


@app.command("show")
def show_(
    device: Annotated[str, typer.Argument(help="name of a profile, or path of its TOML file")],
    format: FormatOption = Format.TEXT,
) -> None:
    """Print a profile with the source of every number, the profiles it builds on, and its figures."""
    profile = profiles.load(device)
    summaries = simulation.summarize([profile])
    texts = {profile.name: profile.text, **profile.library}
    blocks: list[Block] = [Text(profile.text.rstrip())]
    for name, text in profile.library.items():
        blocks.append(Text(f"# ---- {name}, which the profile refers to ----\n{text.rstrip()}"))
    if source := summaries[0].price_source:
        blocks.append(Text(f"Price: {source}{'' if summaries[0].price_checked else ' (not checked)'}."))
    content = {"devices": [summary.model_dump(mode="json") for summary in summaries], "texts": texts}
    show([*blocks, *devices_document(summaries)], content, "devices", format)


app.command()(simulate.simulate)


@app.command("import")
def import_(
    geometry: Annotated[
        Path, typer.Argument(help="JSON file with zones, mechanics, cache and overheads of a drive")
    ],
    seek: Annotated[Path, typer.Argument(help="CSV file with the columns distance_cylinders,seek_ms")],
    output: OutputFile = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Make a profile from a measured drive's files; nothing is fitted to requests."""
    drive = import_drive(geometry, seek)
    if output is not None:
        write_file(output, drive.text.encode())
    elif format is Format.TEXT:
        echo(drive.text, nl=False)
        return
    written = None if output is None else str(output)
    show(imported_document(drive, written), drive.model_dump(mode="json"), "drive", format)


app.command("probe")(probe.probe)
