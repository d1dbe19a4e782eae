"""The command line: parses, calls the API, prints; nothing else."""

from __future__ import annotations

import sys

import typer

from tierwise.errors import TierwiseError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


def main() -> None:
    """Run a command; a :class:`TierwiseError` becomes one line on standard error and exit status 2."""
    try:
        app()
    except TierwiseError as error:
        sys.stderr.write(f"tierwise: {error}\n")
        sys.exit(2)
