"""Commands by name, each imported on use.

Importing engines and charts takes longer than computing an answer from a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tierwise.cli.printing import printable_usage_errors
from tierwise.model.errors import TierwiseError
from tierwise.model.names import split_names

_COMMANDS = {
    "demo": ("lab.cli.study:demo", "Answer here and now: does the log deserve the fast device?"),
    "record": ("cli.record:record", "Record what a running database does."),
    "observe": ("cli.observe:observe", "Observe a database over SQL, without root."),
    "profile": ("cli.profile:profile", "Show where the time of a recording went."),
    "predict": ("cli.predict:predict", "Predict the recorded work on another machine."),
    "advise": ("cli.advise:advise", "Advise which files to move first."),
    "fleet": ("cli.fleet:app", "Advise on many databases under one budget."),
    "verify": ("cli.advise:verify", "Compare a forecast with what came of it."),
    "serve": ("cli.advise:serve", "Serve the advice as a page with sliders, answered live."),
    "report": ("lab.cli.report:report", "Print the answer of a study and write its HTML report."),
    "compare": ("lab.cli.compare:compare", "Compare two sets of results."),
    "doctor": ("cli.doctor:doctor", "Check what this machine can do."),
    "clean": ("cli.doctor:clean_leftovers", "Remove what a killed tierwise left behind."),
    "device": ("cli.device:app", "List, show, simulate, import and probe devices."),
    "study": ("lab.cli.study:app", "List, show and run studies."),
    "workload": ("lab.cli.workload:app", "List, start and check workloads."),
    "recording": ("cli.recording:app", "List, show, redact and export recordings."),
    "disk": ("cli.disk:app", "Make emulated disks: block devices at the speed of a model."),
    "schema": ("cli.schema:print_schema", "Print the JSON Schema of a file or of JSON output."),
    "validate": ("lab.cli.validate:run", "Measure the error of predictions."),
}
"""Name -> module with the command or group of commands, and its line in the help."""
_DEVICE_LISTS = ("--devices", "--have")


class LazyCommandGroup(TyperGroup):
    """All commands; only the used one is imported."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  (typer's)
        """Names, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A command's entry for the help, or ``None``; in that case all are loaded, to suggest one."""
        for name in [cmd_name] if cmd_name in _COMMANDS else _COMMANDS:
            self.commands.setdefault(name, TyperCommand(name, help=_COMMANDS[name][1]))
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is used, imported."""
        if args and args[0] in _COMMANDS:
            self.commands[args[0]] = _imported(args[0])
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the options before the command."""
        with printable_usage_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of the command, and run it."""
        with printable_usage_errors():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        """Options before the command."""
        return _without_variables(super().get_params(ctx))


def import_command(arguments: Sequence[str]) -> None:
    """Import the module of the command that the arguments name, if any does."""
    name = next((argument for argument in arguments if argument in _COMMANDS), None)
    if name is not None:
        _module(name)


def refuse_devices_without_commas(arguments: Sequence[str]) -> None:
    """Refuse a list of devices that is separated by spaces: its second device would be another argument."""
    for at, option in enumerate(arguments):
        if option in _DEVICE_LISTS and at + 2 < len(arguments):
            further = list(takewhile(_names_a_device, arguments[at + 2 :]))
            if further:
                devices = [name.strip(",") for name in arguments[at + 1 : at + 2 + len(further)]]
                raise TierwiseError(
                    f"{option}: {' '.join(devices)} are separate arguments", f"write {','.join(devices)}"
                )


def refuse_empty_values(arguments: Sequence[str]) -> None:
    """Refuse a text without content, which would be taken as the current directory, or as no list.

    What follows ``--`` is the command of another program.
    """
    own = [*takewhile(lambda argument: argument != "--", arguments)]
    for before, argument in pairwise(["tierwise", *own]):
        option, equals, value = argument.partition("=")
        name, given = (option, value) if argument.startswith("--") and equals else (before, argument)
        if not given.strip(" ,"):
            raise TierwiseError(f"{name}: the value {given!r} is empty", "give a value, or leave it out")


def _names_a_device(argument: str) -> bool:
    if argument.startswith("-") or Path(argument).exists():
        return False
    from tierwise.predict.named_devices import resolve_device

    try:
        return all(resolve_device(name) for name in split_names(argument))
    except TierwiseError:
        return False


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command by its name, imported."""
    for name in _COMMANDS:
        yield name, _imported(name)


def _module(name: str) -> Any:
    return import_module(f"tierwise.{_COMMANDS[name][0].partition(':')[0]}")


def _imported(name: str) -> Any:
    attribute = getattr(_module(name), _COMMANDS[name][0].partition(":")[2])
    if not isinstance(attribute, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(attribute)
        attribute = alone
    command = get_command(attribute)
    command.name = name
    for subcommand in (command, *getattr(command, "commands", {}).values()):
        _without_variables(subcommand.params)
    return command


def _without_variables(options: Any) -> Any:
    """The help omits the environment variable of each option: docs/reference/cli.md has the rule."""
    for option in options:
        option.show_envvar = False
    return options
