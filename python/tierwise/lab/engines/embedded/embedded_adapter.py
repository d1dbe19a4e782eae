"""The interface between an embedded engine and its worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.commit_load import SQL_SCHEMA, CommitSession
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters


@dataclass(frozen=True)
class OpenParameters:
    """Parameters for opening a database."""

    directories: Mapping[Role, Path]
    """A directory for each placed role; the system always has one."""
    home: Path
    """For files without a role, such as the library's own messages."""
    settings: Mapping[str, str]
    limits: ResourceLimits

    def directory(self, role: Role) -> Path:
        """Directory for the files of a role: the system's if the role has no place of its own."""
        return self.directories.get(role, self.directories[Role.SYSTEM])


class EmbeddedAdapter(Protocol):
    """One database in the worker's process. Constructed without arguments, then opened once.

    The worker answers requests by its public methods of any name, whose arguments and results fit JSON or are
    pydantic models. They may be called on several threads at once. They raise
    :class:`~tierwise.model.errors.StatementError` or :class:`~tierwise.model.errors.TierwiseError`; anything
    else is reported with its first line.
    """

    def open(self, opening: OpenParameters) -> None:
        """Make the database, or open it and recover if it was not closed."""

    def driver(self) -> tuple[str, object]:
        """Driver and address for ``_core.Clients``: this adapter, which connects the clients."""
        return "python", self

    def execute(self, statement: str) -> None:
        """Run one schema statement."""

    def checkpoint(self) -> None:
        """Write all dirty data."""

    def counters(self) -> Counters:
        """Totals since the database was opened; the caller adds CPU time."""

    def settings(self) -> dict[str, str]:
        """Every setting of the open database."""

    def make_commit_tables(self) -> None:
        """Make the tables of the load of commits, in SQL."""
        for _, statement in SQL_SCHEMA:
            self.execute(statement)

    def commit_session(self) -> CommitSession:
        """Open a session of the load of commits."""

    def check(self) -> IntegrityCheck:
        """Check the database's files as the library can."""

    def close(self) -> None:
        """Write all data and close, so that no recovery is needed."""
