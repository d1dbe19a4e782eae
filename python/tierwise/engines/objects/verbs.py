"""The effect of each verb of the dialect ``objects`` on a store, indexes included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tierwise.engines.objects import encoding
from tierwise.engines.objects.operations import Kind, Operation, Value
from tierwise.engines.objects.transaction import Transaction
from tierwise.model.errors import StatementError

Found = Iterator[list[Value]]
"""The fields of each object found or changed."""


def arranged(operation: Operation, given: Sequence[Value]) -> list[Value]:
    """Values in the order of the kind's fields."""
    values: list[Value] = [None] * len(operation.kind.fields)
    for place, value in zip(operation.places, given, strict=True):
        values[place] = value
    return values


def put(transaction: Transaction, kind: Kind, values: list[Value]) -> None:
    """Store an object and its entries in all indexes."""
    key = encoding.object_key(kind, values[kind.place_of(kind.key)])
    transaction.put(key, encoding.packed(values))
    for entry in encoding.index_keys(kind, values):
        transaction.put(entry, key)


def _insert(transaction: Transaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    values = arranged(operation, [arguments[number] for number in operation.arguments])
    own = values[operation.kind.place_of(operation.kind.key)]
    key = encoding.object_key(operation.kind, own)
    transaction.lock(key)
    if transaction.get(key) is not None:
        raise StatementError(f"{operation.kind.name} {own!r} exists")
    put(transaction, operation.kind, values)
    yield values


def _get(transaction: Transaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    encoded = transaction.get(encoding.object_key(operation.kind, arguments[operation.arguments[0]]))
    if encoded is not None:
        yield encoding.unpacked(encoded)


def _find(transaction: Transaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    field = operation.kind.fields[operation.places[0]]
    value = arguments[operation.arguments[0]]
    for _, key in transaction.scan(encoding.index_prefix(operation.kind, field, value)):
        encoded = transaction.get(key)
        if encoded is not None:
            yield encoding.unpacked(encoded)


def _scan(transaction: Transaction, operation: Operation, _: Sequence[Value]) -> Found:
    for number, (_key, encoded) in enumerate(transaction.scan(encoding.objects_prefix(operation.kind))):
        if number == operation.limit:
            return
        yield encoding.unpacked(encoded)


def _update(transaction: Transaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    for values in _delete(transaction, operation, arguments):
        for place, number in zip(operation.places, operation.arguments, strict=True):
            values[place] = arguments[number]
        put(transaction, operation.kind, values)
        yield values


def _delete(transaction: Transaction, operation: Operation, arguments: Sequence[Value]) -> Found:
    assert operation.key_argument is not None, "the parser sees to it"
    key = encoding.object_key(operation.kind, arguments[operation.key_argument])
    transaction.lock(key)
    encoded = transaction.get(key)
    if encoded is None:
        return
    values = encoding.unpacked(encoded)
    for entry in encoding.index_keys(operation.kind, values):
        transaction.delete(entry)
    transaction.delete(key)
    yield values


VERBS: Mapping[str, Callable[[Transaction, Operation, Sequence[Value]], Found]] = {
    "INSERT": _insert,
    "GET": _get,
    "FIND": _find,
    "SCAN": _scan,
    "UPDATE": _update,
    "DELETE": _delete,
}
