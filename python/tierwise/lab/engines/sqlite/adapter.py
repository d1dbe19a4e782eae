"""SQLite in the worker's process: one connection that keeps the database open, and the clients' own."""

from __future__ import annotations

import json
from typing import Any

from tierwise import _core
from tierwise.lab.engines.commit_load import CommitSession, SqlCommitSession
from tierwise.lab.engines.embedded.embedded_adapter import EmbeddedAdapter, OpenParameters
from tierwise.lab.engines.sqlite import settings as sqlite_settings
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters

_PLACED = (Role.DATA, Role.LOG, Role.DOUBLEWRITE, Role.TEMP, Role.SYSTEM)


class SqliteAdapter(EmbeddedAdapter):
    """One database."""

    def open(self, opening: OpenParameters) -> None:
        """Make the database, or open it and recover after a crash."""
        self._address = json.dumps(
            {
                "places": {role: str(opening.directory(role)) for role in _PLACED},
                "pragmas": sqlite_settings.pragmas(opening.settings, opening.limits),
            }
        )
        self._database = _core.SqliteDatabase(self._address)

    def driver(self) -> tuple[str, object]:
        """Clients find the database by its address."""
        return "sqlite", self._address

    def execute(self, statement: str) -> None:
        """Run a statement; what it creates goes to the one file."""
        self._database.query(statement)

    def checkpoint(self) -> None:
        """Write the log to the database's file."""
        self._database.checkpoint()

    def counters(self) -> Counters:
        """Requests as counted by the VFS; logical reads as counted by each connection's cache."""
        counts = json.loads(self._database.counts())
        page_bytes = int(self._rows("PRAGMA page_size")[0][0])
        data = counts["data"]
        return Counters(
            log_bytes=counts["log"]["written_bytes"],
            doublewrite_bytes=counts["doublewrite"]["written_bytes"],
            logical_reads=counts["cache_hits"] + counts["cache_misses"],
            physical_reads=data["reads"],
            pages_read=data["read_bytes"] // page_bytes,
            physical_writes=data["writes"],
            pages_written=data["written_bytes"] // page_bytes,
            temp_bytes=counts["temp"]["written_bytes"],
            page_bytes=page_bytes,
            commits=counts["commits"],
        )

    def settings(self) -> dict[str, str]:
        """PRAGMAs, and the options that SQLite was compiled with."""
        rows_of = {name: self._rows(f"PRAGMA {name}") for name in sqlite_settings.SHOWN}
        shown = {
            name: sqlite_settings.shown_pragma_value(name, str(rows[0][0]))
            for name, rows in rows_of.items()
            if rows
        }
        options = (row[0] for row in self._rows("PRAGMA compile_options"))
        return {**shown, "compile_options": " ".join(options)}

    def commit_session(self) -> CommitSession:
        """A connection of its own, which waits for the others' transactions at its first statement."""
        database = _core.SqliteDatabase(self._address)

        def execute(sql: str) -> list[list[Any]]:
            rows: list[list[Any]] = json.loads(database.query("BEGIN IMMEDIATE" if sql == "BEGIN" else sql))
            return rows

        return SqlCommitSession(execute, database.close)

    def check(self) -> IntegrityCheck:
        """PRAGMA integrity_check."""
        problems = [str(row[0]) for row in self._rows("PRAGMA integrity_check")]
        return IntegrityCheck(name="PRAGMA integrity_check", problems=[] if problems == ["ok"] else problems)

    def refused(self) -> str | None:
        """The last I/O request that a device refused, if any."""
        return self._database.refused()

    def close(self) -> None:
        """Close the last connection, which empties the log."""
        self._database.close()

    def _rows(self, sql: str) -> list[list[Any]]:
        rows: list[list[Any]] = json.loads(self._database.query(sql))
        return rows
