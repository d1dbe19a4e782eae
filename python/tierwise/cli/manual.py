"""``tierwise manual``: the manual page, made of the same texts as the help."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import typer

from tierwise.cli.commands import all_commands

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


def manual() -> None:
    """Print the manual page: tierwise manual | man -l -"""
    lines = [_HEAD.format(version=version("tierwise"))]
    for name, command in all_commands():
        lines += _command(f"tierwise {name}", command)
    typer.echo("\n".join([*lines, _TAIL]))


def _command(name: str, command: Any) -> Iterator[str]:
    """A command, or each of a group's."""
    for one in getattr(command, "commands", {}).values():
        yield from _command(f"{name} {one.name}", one)
    if hasattr(command, "commands"):
        return
    arguments = [option for option in command.params if option.param_type_name == "argument"]
    names = "".join(f" {_metavar(one)}" for one in arguments)
    yield f".SS {_escaped(name + names)}"
    yield _escaped(" ".join((command.help or "").split()))
    for one in arguments:
        yield from _option(_metavar(one), one.help)
    for option in command.params:
        if option.param_type_name == "option" and "--help" not in option.opts:
            yield from _option(", ".join([*option.opts, *option.secondary_opts]), option.help)


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _option(name: str, text: str | None) -> Iterator[str]:
    yield ".TP"
    yield f".B {_escaped(name)}"
    yield _escaped(text or "")


def _escaped(text: str) -> str:
    """No line that begins with a request of roff, and dashes that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
