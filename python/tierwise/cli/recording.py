"""``tierwise recording``: what is done with a recording besides asking it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise import recording

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _recording() -> None:
    """Recordings, to be given to others."""


@app.command()
def redact(
    source: Annotated[
        Path, typer.Argument(metavar="RECORDING", help="folder that tierwise record has written")
    ],
    out: Annotated[Path, typer.Argument(help="folder of the new recording: empty, or to be made")],
) -> None:
    """Write a recording without paths and names, which gives the same predictions."""
    recording.redact(source, out)
    typer.echo(f"{out}: no paths, mounts or names of programs; docs/privacy.md tells what is left")
