"""DuckDB in the worker's process: opens the database, places its files, serves clients, counts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb

from tierwise.lab.engines.commit_load import SQL_TABLES, CommitSession, SqlCommitSession
from tierwise.lab.engines.embedded.embedded_adapter import EmbeddedAdapter, OpenParameters
from tierwise.model.errors import StatementError, TierwiseError
from tierwise.model.names import did_you_mean
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters

_FETCH_ROWS = 10_000
_INSERT_ROWS = 2_000
"""DuckDB's values take ten times the memory of the rows, outside its own limit."""
_OVER_TIME = "maximum execution time"


class CommitCounter:
    """Commits of all sessions of a database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.commits = 0

    def add(self) -> None:
        """Count one."""
        with self._lock:
            self.commits += 1


class DuckDbSession:
    """One session. Calls must not overlap."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tally: CommitCounter) -> None:
        self._connection = connection
        self._tally = tally
        self._statements: list[duckdb.Statement] = []
        self._in_transaction = False

    def prepare(self, statement: str, names: list[str]) -> None:
        """Number the next statement, from 0; its parameters are question marks, one for each name."""
        parsed = self._connection.extract_statements(statement)
        if len(parsed) != 1 or len(parsed[0].named_parameters) != len(names):
            raise StatementError(f"{statement!r} is not one statement with {len(names)} parameters")
        self._statements += parsed

    def query_number(self, sql: str) -> int | None:
        """Run a query that gives one whole number, or null."""
        self.run(sql)
        row = self._connection.fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def begin(self) -> None:
        """Begin a transaction."""
        self._start("BEGIN")
        self._in_transaction = True

    def execute(self, number: int, arguments: tuple[Any, ...], sum_column: str | None) -> tuple[int, int]:
        """Run a prepared statement to the end of its result; gives rows returned or affected, and a sum."""
        statement = self._statements[number]
        self.run(statement, arguments)
        affected = self.affected()
        return self._drain(sum_column) if affected is None else (affected, 0)

    def commit(self) -> None:
        """Commit, durably."""
        self._in_transaction = False
        self.run("COMMIT")

    def rollback(self) -> None:
        """Roll the transaction back, if there is one."""
        if self._in_transaction:
            self._in_transaction = False
            self._start("ROLLBACK")

    def append(self, table: str, columns: list[str], rows: list[tuple[Any, ...]]) -> int:
        """Add rows in one transaction, each statement with a list for each column."""
        types = self._column_types(table)
        if missing := [column for column in columns if column.lower() not in types]:
            raise StatementError(f"it has no column {missing[0]}" if types else "there is no such table")
        lists = ", ".join(f"unnest(?::{types[column.lower()]}[])" for column in columns)
        insert = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {lists}"
        self.begin()
        for first in range(0, len(rows), _INSERT_ROWS):
            self.run(
                insert, [list(column) for column in zip(*rows[first : first + _INSERT_ROWS], strict=True)]
            )
        self.commit()
        return len(rows)

    def set_cap(self, seconds: float | None) -> None:
        """Stop each statement that runs longer than ``seconds``."""
        limit_ms = 0 if seconds is None else max(1, round(seconds * 1e3))
        self._connection.execute(f"SET SESSION max_execution_time = {limit_ms}")

    def close(self) -> None:
        """End the session; roll back an open transaction."""
        self._connection.close()

    def run(self, statement: str | duckdb.Statement, arguments: Sequence[Any] = ()) -> None:
        """Run one statement; outside a transaction it commits by itself.

        Raises:
            StatementError: with DuckDB's message; distinguishes a conflict and the cap from other failures.
        """
        self._start(statement, arguments)
        if not self._in_transaction:
            self._tally.add()

    def _start(self, statement: str | duckdb.Statement, arguments: Sequence[Any] = ()) -> None:
        try:
            self._connection.execute(statement, list(arguments))
        except duckdb.Error as error:
            raise _failure(error) from None

    def _drain(self, sum_column: str | None) -> tuple[int, int]:
        place = None if sum_column is None else self._place_of(sum_column)
        rows = total = 0
        try:
            while part := self._connection.fetchmany(_FETCH_ROWS):
                rows += len(part)
                if place is not None:
                    total += sum(map(_whole, (row[place] for row in part)))
        except duckdb.Error as error:
            raise _failure(error) from None
        return rows, total

    def affected(self) -> int | None:
        """Rows that the statement just run inserted, changed or deleted; none if it returns rows instead."""
        affected: int = self._connection.rowcount
        return None if affected < 0 else affected

    def _place_of(self, column: str) -> int:
        names = [described[0].lower() for described in self._connection.description or ()]
        if column.lower() not in names:
            raise StatementError(f"the result has no column {column}")
        return names.index(column.lower())

    def _column_types(self, table: str) -> dict[str, str]:
        rows = self._connection.execute(
            "SELECT lower(column_name), data_type FROM duckdb_columns() WHERE table_name = lower(?)", [table]
        )
        return dict(rows.fetchall())


def _failure(error: duckdb.Error) -> StatementError:
    message = next(iter(str(error).splitlines()), type(error).__name__)
    return StatementError(
        message,
        retry=isinstance(error, duckdb.TransactionException) and "onflict" in message,
        capped=isinstance(error, duckdb.InterruptException) and _OVER_TIME in message,
    )


def _whole(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, int | Decimal) and value == int(value):
        return int(value)
    raise StatementError(f"{value!r} is not a whole number that could be summed")


FILE = "database.duckdb"

_LINES = (
    "FORMAT csv, DELIMITER '|', HEADER false, QUOTE '', ESCAPE '', AUTO_DETECT false, BUFFER_SIZE 4000000"
)
"""Sets a smaller buffer than the default 32 MB a thread, which a memory limit would not allow."""
_PARQUET = "FORMAT parquet"
_OUTSIDE_BYTES = 40 << 20
_SHARE_OF_MEMORY = 0.8
"""DuckDB's own limit covers only its buffers; part of the memory outside them is fixed."""


class DuckDbAdapter(EmbeddedAdapter):
    """One database; each session is a separate connection to it."""

    def __init__(self) -> None:
        self._tally = CommitCounter()

    def open(self, opening: OpenParameters) -> None:
        """Open the database file; make it if it is missing."""
        _check(opening.settings)
        self._connection = duckdb.connect(
            str(opening.directory(Role.DATA) / FILE),
            config={**_sizes(opening), **opening.settings, **_places(opening)},
        )
        _lock(self._connection, opening)

    def connect(self) -> DuckDbSession:
        """Open a session."""
        return DuckDbSession(self._connection.cursor(), self._tally)

    def execute(self, statement: str) -> None:
        """Run a statement; what it creates goes to the one file."""
        self._in_session(statement)

    def checkpoint(self) -> None:
        """Write the log's contents to the database file."""
        self._in_session("CHECKPOINT")

    def counters(self) -> Counters:
        """Commits of the sessions; DuckDB keeps no totals."""
        return Counters(page_bytes=self._page_bytes(), commits=self._tally.commits)

    def settings(self) -> dict[str, str]:
        """All of duckdb_settings()."""
        rows = self._connection.cursor().execute("SELECT name, coalesce(value, '') FROM duckdb_settings()")
        return dict(rows.fetchall())

    def commit_session(self) -> CommitSession:
        """A connection of its own."""
        cursor = self._connection.cursor()
        return SqlCommitSession(lambda sql: cursor.execute(sql).fetchall(), cursor.close)

    def check(self) -> IntegrityCheck:
        """Read every column, which verifies the checksums of blocks that are read."""
        name, cursor = "full read with block checksums", self._connection.cursor()
        try:
            for table in SQL_TABLES:
                cursor.execute(f"SELECT sum(hash(checked)) FROM {table} AS checked").fetchall()
        except duckdb.Error as error:
            return IntegrityCheck(name=name, problems=str(error).splitlines()[:1])
        return IntegrityCheck(name=name)

    def load_files(self, table: str, paths: list[str]) -> int:
        """Copy Parquet files, or lines of fields that ``|`` separates, into a table; gives the rows."""
        return sum(
            self._in_session(
                f"COPY {table} FROM {_quoted(path)} ({_PARQUET if path.endswith('.parquet') else _LINES})"
            )
            for path in paths
        )

    def close(self) -> None:
        """Checkpoint and close."""
        self._connection.execute("CHECKPOINT")
        self._connection.close()

    def _in_session(self, statement: str) -> int:
        """Run one statement; gives the rows that it affected."""
        with contextlib.closing(self.connect()) as session:
            session.run(statement)
            return session.affected() or 0

    def _page_bytes(self) -> int:
        row = self._connection.cursor().execute("SELECT block_size FROM pragma_database_size()").fetchone()
        return int(row[0]) if row else 0


def _places(opening: OpenParameters) -> dict[str, str]:
    """Directories for files outside the database; also forbids downloads of extensions."""
    system = str(opening.directory(Role.SYSTEM))
    return {
        "temp_directory": str(opening.directory(Role.TEMP) / "spill"),
        "home_directory": system,
        "secret_directory": system,
        "autoinstall_known_extensions": "false",
    }


def _lock(connection: duckdb.DuckDBPyConnection, opening: OpenParameters) -> None:
    """Restrict statements to the files of the database and those to load; lock all settings but the cap."""
    own = [*opening.directories.values(), opening.home]
    connection.execute(f"SET allowed_directories = [{', '.join(_quoted(f'{path}/') for path in own)}]")
    connection.execute("SET allowed_configs = ['max_execution_time']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _sizes(opening: OpenParameters) -> dict[str, str]:
    sizes = {}
    if opening.limits.memory_bytes is not None:
        given_bytes = opening.limits.memory_bytes
        own_bytes = min(given_bytes - _OUTSIDE_BYTES, given_bytes * _SHARE_OF_MEMORY)
        sizes["memory_limit"] = f"{int(own_bytes)}B"
    if opening.limits.parallelism is not None:
        sizes["threads"] = str(opening.limits.parallelism)
    return sizes


def _check(settings: Mapping[str, str]) -> None:
    """Try each setting on a separate database in memory: DuckDB does not say which value it refuses."""
    with duckdb.connect() as plain:
        known = [name for (name,) in plain.execute("SELECT name FROM duckdb_settings()").fetchall()]
    for name, value in settings.items():
        if name not in known:
            raise TierwiseError(
                f"setting {name} is unknown to DuckDB",
                did_you_mean(name, known, "use a name from duckdb_settings()"),
            )
        try:
            duckdb.connect(config={name: value}).close()
        except duckdb.Error as error:
            raise TierwiseError(
                f"setting {name}: {str(error).splitlines()[0]}", "choose a value that DuckDB takes"
            ) from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
