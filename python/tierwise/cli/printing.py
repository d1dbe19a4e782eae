"""The one way to a terminal: what is printed commands nothing, whatever name or message is in it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import typer

from tierwise.model.names import printable

if TYPE_CHECKING:
    from rich.console import Console

_LINES = "\n\t"
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""The class of all errors of the command line, which typer does not export."""


def print_text(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, to standard error if ``err``; with a line feed at its end unless not ``nl``."""
    typer.echo(printable(str(text), _LINES), err=err, nl=nl)


def print_error(text: str, *, lines: bool = False) -> None:
    """Print an error on one line, or on several."""
    sys.stderr.write(f"{printable(text, _LINES if lines else '')}\n")


def printable_console(*, stderr: bool = False, quiet: bool = False, file: IO[str] | None = None) -> Console:
    """A console of rich that prints printable text and takes no markup from it."""
    from rich import console  # slow to import
    from rich.segment import Segment

    class _Printable(console.Console):
        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text, _LINES), segment.style)

    return _Printable(stderr=stderr, quiet=quiet, file=file, markup=False)


@contextmanager
def printable_usage_errors() -> Iterator[None]:
    """Make errors of the command line printable: they repeat arguments, such as names of files."""
    try:
        yield
    except _USAGE_ERROR as error:
        error.message = printable(error.message, _LINES)
        raise
