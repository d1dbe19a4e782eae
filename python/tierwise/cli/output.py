"""What commands print and write alike: tables, JSON, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console, RenderableType

from tierwise.errors import TierwiseError
from tierwise.predict import RecordedRun
from tierwise.verdict import Verdict

_COLUMNS = 110
"""What the tables of predictions, advice and profiles need."""


def wide_console(columns: int) -> Console:
    """Standard output, at least so wide: a narrower terminal had better wrap lines than lose digits."""
    console = Console()
    console.width = max(console.width, columns)
    return console


def print_parts(parts: Sequence[RenderableType]) -> None:
    """Print renderables, as wide as their tables need."""
    console = wide_console(_COLUMNS)
    for part in parts:
        console.print(part, highlight=False)


def print_verdict(verdict: Verdict) -> None:
    """Print what a recording is good for."""
    for sentence in verdict.sentences:
        typer.echo(sentence)


def print_json(recorded: RecordedRun, **answer: object) -> None:
    """Print an answer with the recorded run that it is from."""
    typer.echo(json.dumps({"recorded": recorded.model_dump(mode="json"), **answer}, indent=2))


def warn(text: str) -> None:
    """Print a warning to standard error."""
    typer.echo(f"warning: {text}", err=True)


def seconds(text: str) -> float:
    """Read a number of seconds above 0.

    Raises:
        typer.BadParameter: if it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise typer.BadParameter(f"{text!r} is no number of seconds above 0")
    return number


def write_file(path: Path, content: bytes) -> Path:
    """Write a file, its directory made if need be, and return its path.

    Raises:
        TierwiseError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "name a place that you may write to") from error
    return path
