"""``tierwise device import``: a measured drive's files as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.drive_files import import_drive
from tierwise.errors import TierwiseError


def import_(
    geometry: Annotated[Path, typer.Argument(help="JSON: a drive's zones, mechanics, cache and overheads")],
    seek: Annotated[Path, typer.Argument(help="CSV with the columns distance_cylinders,seek_ms")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="file to write")] = None,
) -> None:
    """Make a profile from a measured drive's files; nothing is fitted to requests."""
    text = import_drive(geometry, seek)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TierwiseError(f"cannot write {output}: {error}", "give a path that can be written") from error
    typer.echo(f"wrote {output}")
