"""Rules for the roles of an engine's files and threads, and the processes that they are for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tierwise import _core
from tierwise._core import Rules
from tierwise.host import cpu
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, read_text
from tierwise.model.names import one_of

_SHIPPED = DATA / "rules"
_SUFFIX = ".toml"


def names() -> list[str]:
    """Engines with shipped rules."""
    files = [file.name for file in _SHIPPED.iterdir()]
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def load(name: str) -> Rules:
    """Load the rules of an engine by its name, or from a user's file.

    Raises:
        TierwiseError: if the name is unknown, or the file cannot be read or used.
    """
    if name.endswith(_SUFFIX):
        return _parse(read_text(Path(name), "name a readable file of rules"), name)
    if name not in names():
        raise TierwiseError(
            f"there are no rules for engine {name!r}", f"{one_of(name, names())}, or a TOML file"
        )
    return _shipped(name)


def with_roles(rules: Rules, given: Sequence[str]) -> Rules:
    """Rules after roles given as ``PATH=ROLE``.

    Raises:
        TierwiseError: if one is no absolute path with a role.
    """
    try:
        return rules.with_roles(given)
    except ValueError as error:
        raise TierwiseError(*error.args) from None


def of_program(program: str) -> Rules | None:
    """The rules of the engine whose processes have that name, if any."""
    return next((rules for rules in map(_shipped, names()) if program in rules.programs), None)


def for_program(program: str, what: str) -> Rules:
    """The rules of the engine whose processes have that name.

    Raises:
        TierwiseError: beginning with ``what``, a process or a command, if there are none.
    """
    if (rules := of_program(program)) is None:
        raise TierwiseError(
            f"{what} is of no engine that tierwise knows",
            f"give --rules with one of {', '.join(names())}, or a TOML file",
        )
    return rules


def program_of(pid: int) -> str:
    """Name of a process as the kernel shows it; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def first_process_of(pid: int) -> int | None:
    """First process of the server that a process is of; ``None`` if it is of none that tierwise knows."""
    first = None
    while (rules := of_program(program_of(pid))) is not None and rules.is_server:
        first = pid
        pid = cpu.parent_of(pid) or 0
    return first


def all_servers() -> list[int]:
    """First processes of all servers of this host."""
    known = [rules for rules in map(_shipped, names()) if rules.is_server]
    return _core.first_processes([program for rules in known for program in rules.programs])


@cache
def _shipped(name: str) -> Rules:
    return _parse(_SHIPPED.joinpath(name + _SUFFIX).read_text("utf-8"), name + _SUFFIX)


def _parse(text: str, file: str) -> Rules:
    try:
        return Rules(text, file)
    except ValueError as error:
        raise TierwiseError(*error.args) from None
