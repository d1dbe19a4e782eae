"""Parquet files written byte by byte, so that any number in them can be a lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

BOOLEAN, INT64, BYTE_ARRAY = 0, 2, 6
PLAIN, RLE, DELTA, DELTA_LENGTHS, DELTA_TEXTS, DICTIONARY = 0, 3, 5, 6, 7, 8
UNCOMPRESSED, ZSTD = 0, 6
DATA, DICTIONARY_PAGE, DATA_V2 = 0, 2, 3

Fields = Sequence[tuple[int, object]]
"""Number and value of each field: an int, bytes, another structure, or a list of these."""


@dataclass(frozen=True)
class Wide:
    """A whole number of 64 bits."""

    value: int


@dataclass(frozen=True)
class Listed:
    """A list that states its length."""

    values: Sequence[object]
    stated: int | None = None


def varint(value: int) -> bytes:
    """A whole number, seven bits a byte."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    """A whole number with its sign in the lowest bit."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def structure(fields: Fields) -> bytes:
    """Thrift's compact protocol."""
    out, last = bytearray(), 0
    for number, value in fields:
        kind = _kind(value)
        if isinstance(value, bool):
            kind = 1 if value else 2
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number)
        if not isinstance(value, bool):
            out += _encoded(value)
        last = number
    return bytes(out) + b"\0"


def _kind(value: object) -> int:
    return {bool: 1, int: 5, Wide: 6, bytes: 8, Listed: 9}.get(type(value), 12)


def _encoded(value: object) -> bytes:
    match value:
        case int():
            return zigzag(value)
        case Wide():
            return zigzag(value.value)
        case bytes():
            return varint(len(value)) + value
        case Listed():
            many = len(value.values) if value.stated is None else value.stated
            kind = _kind(value.values[0]) if value.values else 12
            head = bytes([many << 4 | kind]) if 0 <= many < 15 else bytes([0xF0 | kind]) + varint(many)
            return head + b"".join(_encoded(value) for value in value.values)
        case _:
            return structure(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Page:
    """A page; what its header states follows from its body unless it is given."""

    body: bytes
    values: int
    encoding: int = PLAIN
    kind: int = DATA
    plain_bytes: int | None = None
    compressed_bytes: int | None = None
    level_bytes: int = 0
    nulls: int = 0
    codec: int = UNCOMPRESSED
    more: Fields = ()

    def encoded(self) -> bytes:
        """Header and body."""
        body = compressed(self.body) if self.codec == ZSTD else self.body
        plain = len(self.body) if self.plain_bytes is None else self.plain_bytes
        packed = len(body) if self.compressed_bytes is None else self.compressed_bytes
        own: Fields
        match self.kind:
            case 2:
                own = [(7, [(1, self.values), (2, self.encoding)])]
            case 3:
                parts = [self.values, self.nulls, self.values, self.encoding, self.level_bytes, 0]
                own = [(8, [*enumerate(parts, 1), (7, self.codec == ZSTD)])]
            case _:
                own = [(5, [(1, self.values), (2, self.encoding), (3, RLE), (4, RLE)])]
        return structure([(1, self.kind), (2, plain), (3, packed), *own, *self.more]) + body


@dataclass(frozen=True)
class Column:
    """A column of one row group."""

    name: str
    kind: int
    pages: Sequence[Page]
    optional: bool = False
    codec: int = UNCOMPRESSED
    stated: dict[str, int] = field(default_factory=dict)
    """What its metadata states otherwise: type, values, plain, packed, data, dictionary."""


def compressed(body: bytes) -> bytes:
    """By Zstandard."""
    return bytes(pa.compress(body, codec="zstd", asbytes=True))


def numbers(values: Sequence[int]) -> bytes:
    """A plain page of numbers."""
    return struct.pack(f"<{len(values)}q", *values)


def texts(values: Sequence[bytes]) -> bytes:
    """A plain page of texts."""
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def levels(present: Sequence[bool]) -> bytes:
    """Definition levels, each in a run of its own, with their length."""
    runs = b"".join(varint(1 << 1) + bytes([level]) for level in present)
    return struct.pack("<I", len(runs)) + runs


def dictionary_indices(index: int, many: int, width: int = 1) -> bytes:
    """One run of the same index."""
    return bytes([width]) + varint(many << 1) + index.to_bytes(8, "little")[: (width + 7) // 8]


def deltas(count: int, blocks: bytes = b"", block: int = 128, parts: int = 4, first: int = 0) -> bytes:
    """A sequence of differences that states a count."""
    return varint(block) + varint(parts) + varint(count) + zigzag(first) + blocks


def file(columns: Sequence[Column], own_rows: int, **stated: object) -> bytes:
    """A file of one row group; ``stated`` replaces what it states.

    Args:
        columns: in order.
        own_rows: that it has.
        stated: ``rows`` and ``group_rows``; ``groups``, how often the group is repeated; ``schema``, a list
            of structures; ``group_list`` and ``column_list``, lengths of lists; ``footer``, the footer's
            length; ``tail``, the last four bytes; ``more``, further fields of the metadata.
    """
    content, chunks = bytearray(b"PAR1"), []
    for column in columns:
        start = len(content)
        for page in column.pages:
            content += replace(page, codec=column.codec).encoded()
        chunks.append(_chunk(column, start, len(content) - start))
    schema = stated.get("schema") or [
        [(4, b"recording"), (5, len(columns))],
        *[[(1, column.kind), (3, int(column.optional)), (4, column.name.encode())] for column in columns],
    ]
    group_rows = stated.get("group_rows", own_rows)
    group = [
        (1, Listed(chunks, stated.get("column_list"))),  # type: ignore[arg-type]
        (2, Wide(len(content))),
        (3, Wide(group_rows)),  # type: ignore[arg-type]
    ]
    groups = [group] * int(stated.get("groups", 1))  # type: ignore[call-overload]
    metadata = structure(
        [
            (1, 2),
            (2, Listed(schema)),  # type: ignore[arg-type]
            (3, Wide(stated.get("rows", own_rows))),  # type: ignore[arg-type]
            (4, Listed(groups, stated.get("group_list"))),  # type: ignore[arg-type]
            *stated.get("more", ()),  # type: ignore[misc]
        ]
    )
    length = int(stated.get("footer", len(metadata)))  # type: ignore[call-overload]
    tail = stated.get("tail", b"PAR1")
    return bytes(content) + metadata + struct.pack("<I", length & 0xFFFFFFFF) + bytes(tail)  # type: ignore[call-overload]


def _chunk(column: Column, start: int, length: int) -> Fields:
    metadata = {
        "type": column.kind,
        "values": sum(page.values for page in column.pages if page.kind != DICTIONARY_PAGE),
        "plain": length,
        "packed": length,
        "data": start,
    } | column.stated
    encodings = Listed([PLAIN, RLE])
    own = [
        (1, metadata["type"]),
        (2, encodings),
        (3, Listed([column.name.encode()])),
        (4, metadata.get("codec", column.codec)),
        (5, Wide(metadata["values"])),
        (6, Wide(metadata["plain"])),
        (7, Wide(metadata["packed"])),
        (9, Wide(metadata["data"])),
        *([(11, Wide(metadata["dictionary"]))] if "dictionary" in metadata else []),
    ]
    return [(2, Wide(start)), (3, own)]
