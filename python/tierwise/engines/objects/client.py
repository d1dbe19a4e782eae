"""Clients of an object store for the driver ``python`` of ``_core.Clients``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from tierwise.engines.objects.operations import Kind, Operation, Value, parse_operation
from tierwise.engines.objects.transaction import Locks, Store, Transaction
from tierwise.engines.objects.verbs import VERBS, arranged, put
from tierwise.model.errors import StatementError, TierwiseError

_LOOK_AT_CLOCK_EVERY = 256
_BATCH_ROWS = 5_000


class ObjectStore(Store, Protocol):
    """A store that knows the kinds of its objects."""

    kinds: dict[str, Kind]
    locks: Locks


class ObjectClient:
    """One session. Calls must not overlap."""

    def __init__(self, store: ObjectStore) -> None:
        """Open a session on a store."""
        self._store = store
        self._operations: list[Operation] = []
        self._open: Transaction | None = None
        self._cap_s: float | None = None
        self._deadline_s: float | None = None

    def prepare(self, statement: str, names: list[str]) -> None:
        """Number the next operation, from 0."""
        try:
            self._operations.append(parse_operation(statement, names, self._store.kinds))
        except TierwiseError as error:
            raise StatementError(str(error)) from None

    def query_number(self, statement: str) -> int | None:
        """Refuse: the dialect has no query that gives a number."""
        raise StatementError(f"a store of objects has no query for {statement!r}")

    def begin(self) -> None:
        """Begin a transaction; without it each operation commits by itself."""
        self._open = Transaction(self._store, self._store.locks)

    def execute(self, number: int, arguments: tuple[Value, ...], sum_column: str | None) -> tuple[int, int]:
        """Run a prepared operation; gives the number of objects found or changed and the sum of one field."""
        self._deadline_s = None if self._cap_s is None else time.monotonic() + self._cap_s
        operation = self._operations[number]
        if self._open is not None:
            return self._run(self._open, operation, arguments, sum_column)
        alone = Transaction(self._store, self._store.locks)
        try:
            outcome = self._run(alone, operation, arguments, sum_column)
            alone.commit()
        finally:
            alone.end()
        return outcome

    def commit(self) -> None:
        """Commit, durably."""
        transaction, self._open = self._open, None
        if transaction is not None:
            transaction.commit()

    def rollback(self) -> None:
        """Roll the transaction back."""
        transaction, self._open = self._open, None
        if transaction is not None:
            transaction.end()

    def append(self, kind_name: str, columns: list[str], rows: list[tuple[Value, ...]]) -> int:
        """Add new objects that no index contains yet, thousands per transaction."""
        operation = parse_operation(
            f"INSERT {kind_name} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})",
            columns,
            self._store.kinds,
        )
        for first in range(0, len(rows), _BATCH_ROWS):
            transaction = Transaction(self._store, self._store.locks)
            for row in rows[first : first + _BATCH_ROWS]:
                put(transaction, operation.kind, arranged(operation, row))
            transaction.commit()
        return len(rows)

    def set_cap(self, seconds: float | None) -> None:
        """Stop each operation that runs longer than ``seconds``."""
        self._cap_s = seconds

    def close(self) -> None:
        """End the session."""
        self.rollback()

    def _run(
        self, transaction: Transaction, operation: Operation, arguments: Sequence[Value], column: str | None
    ) -> tuple[int, int]:
        found = VERBS[operation.verb](transaction, operation, arguments)
        place = None if column is None else operation.kind.place_of(column)
        rows = total = 0
        for values in found:
            rows += 1
            if place is not None:
                total += _whole(values[place])
            if rows % _LOOK_AT_CLOCK_EVERY == 0:
                self._check_cap()
        return rows, total

    def _check_cap(self) -> None:
        if self._deadline_s is not None and time.monotonic() > self._deadline_s:
            raise StatementError("stopped at the cap", capped=True)


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise StatementError(f"{value!r} is not a whole number that could be summed")
    return value
