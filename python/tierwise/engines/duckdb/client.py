"""Clients of DuckDB for the driver ``python`` of ``_core.Clients``."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb

from tierwise.model.errors import StatementError

_FETCH_ROWS = 10_000
_INSERT_ROWS = 2_000
"""DuckDB's values take ten times the memory of the rows, outside its own limit."""
_OVER_TIME = "maximum execution time"


class Tally:
    """Commits of all sessions of a database."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock = threading.Lock()
        self.commits = 0

    def add(self) -> None:
        """Count one."""
        with self._lock:
            self.commits += 1


class DuckSession:
    """One session. Calls must not overlap."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tally: Tally) -> None:
        """Take over a connection."""
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
        found = self._connection.fetchone()
        return None if found is None or found[0] is None else int(found[0])

    def begin(self) -> None:
        """Begin a transaction."""
        self._start("BEGIN")
        self._in_transaction = True

    def execute(self, number: int, arguments: tuple[Any, ...], sum_column: str | None) -> tuple[int, int]:
        """Run a prepared statement to the end of its result; gives rows returned or affected, and a sum."""
        statement = self._statements[number]
        self.run(statement, arguments)
        if statement.type == duckdb.StatementType.SELECT:
            return self._drain(sum_column)
        return self.affected(), 0

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

    def affected(self) -> int:
        """Rows that the statement just run inserted, changed or deleted."""
        found = self._connection.fetchone()
        return found[0] if found and isinstance(found[0], int) else 0

    def _place_of(self, column: str) -> int:
        names = [described[0].lower() for described in self._connection.description or ()]
        if column.lower() not in names:
            raise StatementError(f"the result has no column {column}")
        return names.index(column.lower())

    def _column_types(self, table: str) -> dict[str, str]:
        found = self._connection.execute(
            "SELECT lower(column_name), data_type FROM duckdb_columns() WHERE table_name = lower(?)", [table]
        )
        return dict(found.fetchall())


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
