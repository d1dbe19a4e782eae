"""The command line: parses arguments, calls the API, prints.

Not here: logic that a caller of the API would miss.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from tierwise.cli.commands import (
    LazyCommandGroup,
    import_command,
    refuse_devices_without_commas,
    refuse_empty_values,
)
from tierwise.cli.options import SETTINGS, option_defaults
from tierwise.cli.printing import print_error, print_text
from tierwise.model.errors import HostError, TierwiseError

_DEFECT = 70
_FIXES = {
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ENOSPC: "free space there, or name another place",
    errno.EDQUOT: "free space there, or name another place",
    errno.EROFS: "name a place that can be written to",
    errno.EIO: "look for errors of its device in the kernel's log",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files (fs.file-max)",
}
"""What to do about errors of the machine that any command may meet."""

app = typer.Typer(
    cls=LazyCommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "TIERWISE"},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"tierwise {_version()}")
        raise typer.Exit()


@app.callback()
def _global_options(
    context: typer.Context,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="show all warnings, and the cause of errors")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="show no progress")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="print no colours")] = False,
    version: Annotated[  # noqa: ARG001  (its callback prints it)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Which of my database's files deserve the fast device?"""
    SETTINGS.verbose, SETTINGS.quiet = verbose, quiet
    if no_color:
        os.environ["NO_COLOR"] = "1"  # for child processes too
    context.default_map = option_defaults()


def main(arguments: Sequence[str]) -> None:
    """Run a command.

    Its module is imported first: until then, the caller's interrupt handling applies.

    A :class:`TierwiseError` becomes one line on standard error and its exit status. Any other exception is a
    defect of tierwise: exit status 70, and a line that names the file with the details. SIGTERM undoes as
    Ctrl-C does, and so does SIGHUP, when a terminal is gone, unless the caller ignores it (nohup).
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for a locale without dashes, as standard error
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # a console 0 wide, as in a container, would print nothing
    try:
        import_command(arguments)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN or number != signal.SIGHUP:
                signal.signal(number, signal.default_int_handler)
        refuse_empty_values(arguments)
        refuse_devices_without_commas(arguments)
        with _machine_errors():
            app(arguments, prog_name="tierwise")  # also of `python -m tierwise`, for its completion
    except TierwiseError as error:
        if SETTINGS.verbose:
            import traceback  # slow to import

            print_error("".join(traceback.format_exception(error)), lines=True)
        print_error(f"tierwise: {error}")
        sys.exit(error.exit_status)
    except Exception as error:
        print_error(f"tierwise: defect: {type(error).__name__}: {error}; details are in {_details()}")
        sys.exit(_DEFECT)


@contextmanager
def _machine_errors() -> Iterator[None]:
    """Turn what no command can foresee, such as a disk that is full, into an error with its fix."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FIXES:
            raise
        named = f"{error.filename}: " if error.filename else ""
        raise HostError(f"{named}{error.strerror}", _FIXES[error.errno]) from error


def _version() -> str:
    from importlib.metadata import version  # slow to import

    return version("tierwise")


def _details() -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="tierwise-defect-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"{' '.join(sys.argv)}\ntierwise {_version()}, Python {sys.version}\n")
        traceback.print_exc(file=file)
    return file.name
