"""``tierwise manual``: the manual page, generated from the help texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from tierwise.cli.commands import all_commands
from tierwise.cli.printing import echo

_HEAD = """.TH TIERWISE 1 "" "tierwise {version}" "User Commands"
.SH NAME
tierwise \\- which of my database's files deserve the fast device?
.SH SYNOPSIS
.B tierwise
[\\-v] [\\-q] [\\-\\-no\\-color] COMMAND [OPTIONS] [ARGUMENTS]
.SH COMMANDS"""
_TAIL = """.SH EXIT STATUS
.IP 0
answered
.IP 1
the answer is no: no valid run, a check failed, a prediction was refused
.IP 2
wrong usage or input
.IP 3
this machine or user cannot
.IP 70
a defect of tierwise
.SH FILES
.I ~/.config/tierwise/config.toml
has defaults of options; a variable TIERWISE_COMMAND_OPTION wins over it."""


@dataclass(frozen=True)
class Entry:
    """One command: its name with its arguments, its help, and names and help of arguments and options."""

    name: str
    help: str
    parameters: list[tuple[str, str]]


def manual() -> None:
    """Print the manual page: tierwise manual | man -l -"""
    lines = [_HEAD.format(version=version("tierwise"))]
    for entry in entries():
        lines += [f".SS {_escaped(entry.name)}", _escaped(entry.help)]
        for name, text in entry.parameters:
            lines += [".TP", f".B {_escaped(name)}", _escaped(text)]
    echo("\n".join([*lines, _TAIL]))


def entries() -> Iterator[Entry]:
    """Every command, in the order of the help."""
    for name, command in all_commands():
        yield from _entries(f"tierwise {name}", command)


def _entries(name: str, command: Any) -> Iterator[Entry]:
    """Entry of a command, or of each command of a group."""
    for subcommand in getattr(command, "commands", {}).values():
        yield from _entries(f"{name} {subcommand.name}", subcommand)
    if hasattr(command, "commands"):
        return
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and "--help" not in parameter.opts
    ]
    yield Entry(
        name="".join([name, *(f" {_metavar(argument)}" for argument in arguments)]),
        help=" ".join((command.help or "").split()),
        parameters=[
            *((_metavar(argument), argument.help or "") for argument in arguments),
            *((", ".join([*option.opts, *option.secondary_opts]), option.help or "") for option in options),
        ],
    )


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _escaped(text: str) -> str:
    """Escape lines that roff would read as requests, and make dashes copyable."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
