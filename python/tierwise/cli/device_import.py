"""``tierwise device import``: a measured drive's files as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import OutputFile
from tierwise.cli.output import Format, FormatOption, show, write_file
from tierwise.cli.printing import echo
from tierwise.device_models.profiles import import_drive
from tierwise.report.devices import imported_document


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
