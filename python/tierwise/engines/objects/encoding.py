"""Objects as bytes: keys in the order of their values, index entries, and fields."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgpack

from tierwise.engines.objects.operations import Kind, Value
from tierwise.model.errors import TierwiseError

_OBJECTS, _INDEX, _KINDS = b"o", b"i", b"k"
_SIGN = 1 << 63


def kind_key(number: int, name: str) -> bytes:
    """Key of a kind's declaration; sorts by the kind's number."""
    return kinds_prefix() + struct.pack(">H", number) + name.encode()


def kinds_prefix() -> bytes:
    """Key prefix of all declarations."""
    return _KINDS


def objects_prefix(kind: Kind) -> bytes:
    """Key prefix of all objects of a kind."""
    return _OBJECTS + struct.pack(">H", kind.number)


def object_key(kind: Kind, key: Value) -> bytes:
    """Key of an object."""
    return objects_prefix(kind) + _ordered(key)


def index_prefix(kind: Kind, field: str, value: Value) -> bytes:
    """Key prefix of the index entries of all objects with that value in that field."""
    return _INDEX + struct.pack(">HH", kind.number, kind.indexes.index(field)) + _ordered(value)


def index_keys(kind: Kind, values: Sequence[Value]) -> list[bytes]:
    """Index entries of an object in all indexes of its kind; each entry's value is the object's key."""
    own = _ordered(values[kind.place_of(kind.key)])
    return [index_prefix(kind, field, values[kind.place_of(field)]) + own for field in kind.indexes]


def packed(values: Sequence[Value]) -> bytes:
    """Encode the fields of an object."""
    return bytes(msgpack.packb(list(values)))


def unpacked(encoded: bytes) -> list[Value]:
    """The fields that :func:`packed` was given."""
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
