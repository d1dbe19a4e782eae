"""``tierwise device import``: a measured drive's files as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import OutputFile
from tierwise.cli.output import write_file
from tierwise.device_models.measured_drives import import_drive


def import_(
    geometry: Annotated[
        Path, typer.Argument(help="JSON file with zones, mechanics, cache and overheads of a drive")
    ],
    seek: Annotated[Path, typer.Argument(help="CSV file with the columns distance_cylinders,seek_ms")],
    output: OutputFile = None,
) -> None:
    """Make a profile from a measured drive's files; nothing is fitted to requests."""
    text = import_drive(geometry, seek)
    if output is None:
        typer.echo(text, nl=False)
        return
    typer.echo(f"wrote {write_file(output, text.encode())}")
