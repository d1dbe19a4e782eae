"""The command line: parses, calls the API, prints; nothing else."""

from __future__ import annotations

import signal
import sys

import typer

from tierwise.cli.commands import Commands
from tierwise.errors import TierwiseError

_BAD_INPUT = 2

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


@app.callback()
def _tierwise() -> None:
    """Which of my database's files deserve the fast device?"""


def main() -> None:
    """Run a command; a :class:`TierwiseError` becomes one line on standard error and exit status 2.

    SIGTERM undoes as Ctrl-C does.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except TierwiseError as error:
        sys.stderr.write(f"tierwise: {error}\n")
        sys.exit(_BAD_INPUT)
