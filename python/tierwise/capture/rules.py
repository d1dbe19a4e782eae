"""Rules for the roles of an engine's files and threads: shipped ones, and a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.roles import Role
from tierwise.model.shipped import DATA
from tierwise.model.suggestions import one_of

_SHIPPED = DATA / "rules"
_SUFFIX = ".toml"


@dataclass(frozen=True)
class Rules:
    """The rules of one engine, with their text, which the recorder also reads."""

    file: str
    text: str
    parsed: _core.Rules

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self.parsed.engine

    @property
    def settings(self) -> list[str]:
        """Names of the engine's settings that matter to prediction."""
        return self.parsed.settings

    @property
    def works_in_data_directory(self) -> bool:
        """Whether a server's working directory is its data directory."""
        return self.parsed.works_in_data_directory

    @property
    def counters(self) -> str | None:
        """Kind of DSN for the engine's counters; ``None`` if tierwise reads no counters of this engine."""
        return self.parsed.counters

    def with_roles(self, given: Sequence[str]) -> Rules:
        """These rules after roles given as ``PATH=ROLE``.

        Raises:
            TierwiseError: if one is no absolute path with a role.
        """
        try:
            return replace(self, parsed=self.parsed.with_roles(given))
        except ValueError as error:
            raise TierwiseError(*error.args) from None

    def on_server(self, pid: int, root: Path) -> Rules:
        """These rules after the roles of files that the settings and links of a server tell."""
        return replace(self, parsed=self.parsed.on_server(pid, root))

    def role_of_content(self, place: Path) -> Role | None:
        """Role of a file whose name says nothing, by its first bytes."""
        role = self.parsed.role_of_content(place)
        return None if role is None else Role(role)

    def role_of(self, path: str) -> Role | None:
        """Role of a file by its path; ``None`` for files outside the database."""
        role = self.parsed.role_of(path)
        return None if role is None else Role(role)


def names() -> list[str]:
    """Engines with shipped rules."""
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in _SHIPPED.iterdir() if _is_rules(entry.name))


def load(name: str) -> Rules:
    """Load the rules of an engine by its name, or from a user's file.

    Raises:
        TierwiseError: if the name is unknown, or the file cannot be read or used.
    """
    if name.endswith(_SUFFIX):
        return _read(Path(name))
    if name not in names():
        raise TierwiseError(
            f"there are no rules for engine {name!r}", f"{one_of(name, names())}, or a TOML file"
        )
    return _shipped(name)


def of_program(program: str) -> Rules | None:
    """The rules of the engine whose processes have that name, if any."""
    return next((rules for rules in map(_shipped, names()) if program in rules.parsed.programs), None)


@cache
def _shipped(name: str) -> Rules:
    return _parse(_SHIPPED.joinpath(name + _SUFFIX).read_text("utf-8"), name + _SUFFIX)


def _read(path: Path) -> Rules:
    return _parse(read_text(path, "name a readable file of rules"), str(path))


def _parse(text: str, file: str) -> Rules:
    try:
        return Rules(file, text, _core.Rules(text, file))
    except ValueError as error:
        raise TierwiseError(*error.args) from None


def _is_rules(name: str) -> bool:
    return name.endswith(_SUFFIX)
