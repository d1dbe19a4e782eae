"""A store of objects over keys and values: encoding, transactions, the dialect's verbs, clients."""

from __future__ import annotations

import heapq
import math
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgpack

from tierwise.lab.engines.objects.object_dialect import ObjectKind, Operation, Value, parse_operation
from tierwise.model.errors import StatementError, TierwiseError

_OBJECTS, _INDEX = b"o", b"i"
KINDS = b"k"
"""Key prefix of all declarations."""
_SIGN = 1 << 63


def kind_key(number: int, name: str) -> bytes:
    """Key of a kind's declaration; sorts by the kind's number."""
    return KINDS + struct.pack(">H", number) + name.encode()


def objects_prefix(kind: ObjectKind) -> bytes:
    """Key prefix of all objects of a kind."""
    return _OBJECTS + struct.pack(">H", kind.number)


def object_key(kind: ObjectKind, key: Value) -> bytes:
    """Key of an object."""
    return objects_prefix(kind) + _ordered(key)


def index_prefix(kind: ObjectKind, field: str, value: Value) -> bytes:
    """Key prefix of the index entries of all objects with that value in that field."""
    return _INDEX + struct.pack(">HH", kind.number, kind.indexes.index(field)) + _ordered(value)


def index_keys(kind: ObjectKind, values: Sequence[Value]) -> list[bytes]:
    """Index entries of an object in all indexes of its kind; each entry's value is the object's key."""
    own = _ordered(values[kind.place_of(kind.key)])
    return [index_prefix(kind, field, values[kind.place_of(field)]) + own for field in kind.indexes]


def unpack_object(encoded: bytes) -> list[Value]:
    """The fields of an object."""
    values: list[Value] = msgpack.unpackb(encoded)
    return values


def _ordered(value: Value) -> bytes:
    """Bytes that sort like the values of their type; none is a prefix of another."""
    if isinstance(value, int):
        return b"\1" + (value + _SIGN).to_bytes(8, "big")
    if isinstance(value, float):
        bits: int = struct.unpack(">Q", struct.pack(">d", value))[0]
        return b"\2" + (bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")
    if isinstance(value, str):
        return b"\3" + value.encode().replace(b"\0", b"\0\xff") + b"\0\0"
    raise TierwiseError("a key or an indexed field is null", "give it a value")


Pair = tuple[bytes, bytes]

_LOCK_TIMEOUT_S = 1.0


class KeyValueStore(Protocol):
    """A sorted map from bytes to bytes, shared by all sessions, with the kinds of its objects."""

    kinds: dict[str, ObjectKind]
    locks: KeyLocks

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or ``None``."""

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key has the prefix, sorted, as of the first one."""

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Make all changes at once, durably; ``None`` deletes the key."""


class KeyLocks:
    """Locks on keys, held by transactions. A lock timeout counts as a deadlock."""

    def __init__(self) -> None:
        self._owners: dict[bytes, StoreTransaction] = {}
        self._freed = threading.Condition()

    def take(self, key: bytes, owner: StoreTransaction) -> None:
        """Lock a key, waiting for it if necessary.

        Raises:
            StatementError: retryable, if another transaction does not release the key in time.
        """
        with self._freed:
            free = self._freed.wait_for(lambda: self._owners.get(key, owner) is owner, _LOCK_TIMEOUT_S)
            if not free:
                raise StatementError(
                    "waited for a lock for too long: a deadlock, or a long transaction", retry=True
                )
            self._owners[key] = owner

    def release(self, keys: set[bytes]) -> None:
        """Release keys."""
        with self._freed:
            for key in keys:
                del self._owners[key]
            self._freed.notify_all()


class StoreTransaction:
    """Uncommitted changes, with locks on the changed keys. Used by one thread at a time."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._locked: set[bytes] = set()
        self._changes: dict[bytes, bytes | None] = {}

    def lock(self, key: bytes) -> None:
        """Keep others from changing a key until the transaction ends."""
        if key not in self._locked:
            self._store.locks.take(key, self)
            self._locked.add(key)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, as changed by this transaction."""
        return self._changes[key] if key in self._changes else self._store.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._changes[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self._changes[key] = None

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key has the prefix, sorted, as changed by this transaction."""
        own = sorted(pair for pair in self._changes.items() if pair[0].startswith(prefix))
        stored = self._store.scan(prefix)
        if not own:
            return stored
        kept = (pair for pair in stored if pair[0] not in self._changes)
        return heapq.merge(kept, ((key, value) for key, value in own if value is not None))

    def commit(self) -> None:
        """Write all changes, durably; after a failure, none of them is guaranteed."""
        try:
            if self._changes:
                self._store.write(self._changes)
        finally:
            self.end()

    def end(self) -> None:
        """Discard changes that were not written."""
        self._changes = {}
        self._store.locks.release(self._locked)
        self._locked = set()


Found = Iterator[list[Value]]
"""The fields of each object found or changed."""


def values_in_field_order(operation: Operation, given: Sequence[Value]) -> list[Value]:
    """Values in the order of the kind's fields."""
    values: list[Value] = [None] * len(operation.kind.fields)
    for place, value in zip(operation.places, given, strict=True):
        values[place] = value
    return values


def put_object(transaction: StoreTransaction, kind: ObjectKind, values: list[Value]) -> None:
    """Store an object and its entries in all indexes."""
    key = object_key(kind, values[kind.place_of(kind.key)])
    transaction.put(key, bytes(msgpack.packb(values)))
    for entry in index_keys(kind, values):
        transaction.put(entry, key)


def _insert(transaction: StoreTransaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    values = values_in_field_order(operation, [arguments[number] for number in operation.arguments])
    own = values[operation.kind.place_of(operation.kind.key)]
    key = object_key(operation.kind, own)
    transaction.lock(key)
    if transaction.get(key) is not None:
        raise StatementError(f"{operation.kind.name} {own!r} exists")
    put_object(transaction, operation.kind, values)
    yield values


def _get(transaction: StoreTransaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    encoded = transaction.get(object_key(operation.kind, arguments[operation.arguments[0]]))
    if encoded is not None:
        yield unpack_object(encoded)


def _find(transaction: StoreTransaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    field = operation.kind.fields[operation.places[0]]
    value = arguments[operation.arguments[0]]
    for _, key in transaction.scan(index_prefix(operation.kind, field, value)):
        encoded = transaction.get(key)
        if encoded is not None:
            yield unpack_object(encoded)


def _scan(transaction: StoreTransaction, operation: Operation, _: Sequence[Value]) -> Found:
    for number, (_key, encoded) in enumerate(transaction.scan(objects_prefix(operation.kind))):
        if number == operation.limit:
            return
        yield unpack_object(encoded)


def _update(transaction: StoreTransaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    for values in _delete(transaction, operation, arguments):
        for place, number in zip(operation.places, operation.arguments, strict=True):
            values[place] = arguments[number]
        put_object(transaction, operation.kind, values)
        yield values


def _delete(transaction: StoreTransaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    assert operation.key_argument is not None, "the parser sees to it"
    key = object_key(operation.kind, arguments[operation.key_argument])
    transaction.lock(key)
    encoded = transaction.get(key)
    if encoded is None:
        return
    values = unpack_object(encoded)
    for entry in index_keys(operation.kind, values):
        transaction.delete(entry)
    transaction.delete(key)
    yield values


VERBS: Mapping[str, Callable[[StoreTransaction, Operation, Sequence[Value]], Found]] = {
    "INSERT": _insert,
    "GET": _get,
    "FIND": _find,
    "SCAN": _scan,
    "UPDATE": _update,
    "DELETE": _delete,
}


_LOOK_AT_CLOCK_EVERY = 256
_BATCH_ROWS = 5_000


class ObjectClient:
    """One session. Calls must not overlap."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._operations: list[Operation] = []
        self._open: StoreTransaction | None = None
        self._cap_s = self._deadline_s = math.inf

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
        self._open = StoreTransaction(self._store)

    def execute(self, number: int, arguments: tuple[Value, ...], sum_column: str | None) -> tuple[int, int]:
        """Run a prepared operation; gives the number of objects found or changed and the sum of one field."""
        self._deadline_s = time.monotonic() + self._cap_s
        operation = self._operations[number]
        if self._open is not None:
            return self._run(self._open, operation, arguments, sum_column)
        alone = StoreTransaction(self._store)
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
            transaction = StoreTransaction(self._store)
            for row in rows[first : first + _BATCH_ROWS]:
                put_object(transaction, operation.kind, values_in_field_order(operation, row))
            transaction.commit()
        return len(rows)

    def set_cap(self, seconds: float | None) -> None:
        """Stop each operation that runs longer than ``seconds``."""
        self._cap_s = math.inf if seconds is None else seconds

    def close(self) -> None:
        """End the session."""
        self.rollback()

    def _run(
        self,
        transaction: StoreTransaction,
        operation: Operation,
        arguments: Sequence[Value],
        column: str | None,
    ) -> tuple[int, int]:
        matched = VERBS[operation.verb](transaction, operation, arguments)
        place = None if column is None else operation.kind.place_of(column)
        rows = total = 0
        for values in matched:
            rows += 1
            if place is not None:
                total += _whole(values[place])
            if rows % _LOOK_AT_CLOCK_EVERY == 0 and time.monotonic() > self._deadline_s:
                raise StatementError("stopped at the cap", capped=True)
        return rows, total


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise StatementError(f"{value!r} is not a whole number that could be summed")
    return value
