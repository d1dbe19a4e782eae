"""What an embedded engine must give the worker that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tierwise.engines.base import Limits
from tierwise.model.roles import Role
from tierwise.results.counters import Counters, SpaceUse


@dataclass(frozen=True)
class Opening:
    """How a database is to be opened."""

    directories: Mapping[Role, Path]
    """A directory for each placed role; the system always has one."""
    home: Path
    """For what belongs to no role, such as the library's own messages."""
    settings: Mapping[str, str]
    limits: Limits

    def directory(self, role: Role) -> Path:
        """Where the files of a role go: with the system if it has no place of its own."""
        return self.directories.get(role, self.directories[Role.SYSTEM])


class Adapter(Protocol):
    """One database in the worker's process. Made without arguments, then opened once.

    Methods may be called on several threads at once. They raise
    :class:`~tierwise.model.errors.StatementError`
    or :class:`~tierwise.model.errors.TierwiseError`; anything else is reported with its first line.
    """

    special: Mapping[str, Callable[..., object]]
    """Requests that only this engine answers, by name; arguments and results are what JSON can hold."""

    def open(self, opening: Opening) -> None:
        """Make the database, or open it and recover if it was not closed."""

    def driver(self) -> tuple[str, object]:
        """Driver and address for ``_core.Clients``."""

    def execute(self, role: Role, statement: str, /) -> None:
        """Run one statement of a schema, which creates something of that role."""

    def checkpoint(self) -> None:
        """Write all that is dirty."""

    def counters(self) -> Counters:
        """Totals since the database was opened; CPU time is left to the caller."""

    def space(self) -> SpaceUse | None:
        """Space that the database takes now, if it can tell."""

    def settings(self) -> dict[str, str]:
        """Every setting of the open database."""

    def close(self) -> None:
        """Write all and close, so that nothing is left to recover."""
