"""Commands by their names, each imported when it is asked for.

Engines and charts take longer to import than an answer from a recording takes to find.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

_PLACES = {
    "demo": "study:demo",
    "run": "study:run",
    "studies": "study:studies",
    "report": "report:report",
    "compare": "compare:compare",
    "probe": "probe:probe",
    "record": "record:record",
    "recording": "recording:app",
    "validate": "validate:run",
    "profile": "profile:profile",
    "predict": "predict:predict",
    "advise": "advise:advise",
    "devices": "devices:devices",
    "doctor": "doctor:doctor",
    "clean": "disk:clean",
    "disk": "disk:app",
    "device": "devices:app",
    "workload": "workload:app",
}
"""Name -> module of this package, and the function or group of commands in it."""


class Commands(TyperGroup):
    """All commands; of those that are not asked for, nothing is imported."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  (typer's)
        """Names, in the order of the help."""
        return list(_PLACES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A command, or ``None``; then all are there, for one of them may be meant."""
        for name in [cmd_name] if cmd_name in _PLACES else _PLACES:
            if name not in self.commands:
                self.commands[name] = _imported(name)
        return self.commands.get(cmd_name)


def _imported(name: str) -> Any:
    module, _, attribute = _PLACES[name].partition(":")
    found = getattr(import_module(f"tierwise.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    command = get_command(found)
    command.name = name
    return command
