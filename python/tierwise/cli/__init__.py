"""The command line: parses, calls the API, prints; nothing else."""

from __future__ import annotations

import signal
import sys

import typer

from tierwise.cli import (
    advise,
    compare,
    devices,
    disk,
    doctor,
    predict,
    probe,
    profile,
    record,
    report,
    study,
    validate,
    workload,
)
from tierwise.errors import TierwiseError

_BAD_INPUT = 2

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
app.command()(study.demo)
app.command()(study.run)
app.command()(study.studies)
app.command()(report.report)
app.command()(compare.compare)
app.command()(probe.probe)
app.command()(record.record)
app.command("validate")(validate.run)
app.command()(profile.profile)
app.command()(predict.predict)
app.command()(advise.advise)
app.command()(devices.devices)
app.command()(doctor.doctor)
app.command()(disk.clean)
app.add_typer(disk.app, name="disk")
app.add_typer(devices.app, name="device")
app.add_typer(workload.app, name="workload")


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
