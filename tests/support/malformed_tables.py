"""Tables of a recording that lie: about rows, sizes, offsets, counts, types, lengths."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from support import parquet_forge as forge
from support.parquet_forge import BOOLEAN, BYTE_ARRAY, INT64, Column, Page, Wide
from support.recording_factory import COLUMNS, ONE_COMMIT

HUGE = (50_000_000, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 62) - 1, (1 << 63) - 1, -1, -(1 << 31), 0, 1)
OPTIONAL = {"role", "device", "waker", "call", "file", "offset_bytes", "sector", "thread"}
ESCAPES = (
    b"\x1b]0;owned\x07",
    b"\x1b[2J\x1b[31m",
    b"\xc2\x9b31m",
    "\u202egnp.exe".encode(),
    b"a\nb\r",
    b"\x7f\x08",
)
Stated = dict[str, int]


def honest(name: str, rows: Sequence[tuple[Any, ...]] | None = None) -> list[Column]:
    """The columns of a table of ``ONE_COMMIT``."""
    columns_of_rows = ONE_COMMIT[name] if rows is None else rows
    columns = []
    for number, (column, kind) in enumerate(value.split() for value in COLUMNS[name].split(", ")):
        cells = [row[number] for row in columns_of_rows]
        optional = any(cell is None for cell in cells) or (not cells and column in OPTIONAL)
        columns.append(_column(column, kind, cells, optional))
    return columns


def _column(name: str, kind: str, cells: Sequence[Any], optional: bool) -> Column:
    values = [cell for cell in cells if cell is not None]
    body = forge.levels([cell is not None for cell in cells]) if optional else b""
    match kind:
        case "BIGINT":
            return Column(name, INT64, [Page(body + forge.numbers(values), len(cells))], optional)
        case "BOOLEAN":
            bits = sum(1 << number for number, value in enumerate(values) if value)
            packed = bits.to_bytes(max((len(values) + 7) // 8, 1), "little")
            return Column(name, BOOLEAN, [Page(body + packed, len(cells))], optional)
        case _:
            texts = forge.texts([str(value).encode() for value in values])
            return Column(name, BYTE_ARRAY, [Page(body + texts, len(cells))], optional)


@cache
def bomb(size_bytes: int) -> bytes:
    """So many bytes of nothing, compressed."""
    return forge.compressed(bytes(size_bytes))


def lying(name: str, draw: random.Random) -> tuple[bytes, Stated]:
    """A table with one to three lies, and what ``about.json`` should say of it."""
    columns, rows = honest(name), len(ONE_COMMIT[name])
    stated: dict[str, Any] = {}
    declared: Stated = {"rows": rows}
    for _ in range(draw.randint(1, 3)):
        lie = draw.choice(LIES)
        number = draw.randrange(len(columns))
        columns[number] = lie(columns[number], rows, draw, stated, declared)
    content = forge.file(columns, rows, **stated)
    return content, declared


def vouched(content: bytes, declared: Stated) -> Stated:
    """What ``about.json`` says of a table, so that the decoder has to cope with it."""
    return {"size_bytes": len(content), "crc32": zlib.crc32(content), **declared}


Lie = Callable[[Column, int, random.Random, dict[str, Any], Stated], Column]


def _paged(column: Column, change: Callable[[Page], Page]) -> Column:
    return replace(column, pages=[change(page) for page in column.pages])


def _rows(column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated) -> Column:
    many = draw.choice(HUGE)
    for key in draw.sample(["rows", "group_rows", "said"], draw.randint(1, 3)):
        if key == "said":
            declared["rows"] = many
        else:
            stated[key] = many
    return _paged(column, lambda page: replace(page, values=many)) if draw.random() < 0.5 else column


def _values(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    return _paged(column, lambda page: replace(page, values=draw.choice(HUGE)))


def _sizes(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    key = draw.choice(["plain_bytes", "compressed_bytes"])
    codec = draw.choice([forge.UNCOMPRESSED, forge.ZSTD])
    return replace(_paged(column, lambda page: replace(page, **{key: draw.choice(HUGE)})), codec=codec)


def _metadata(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    key = draw.choice(["type", "values", "plain", "packed", "data", "dictionary", "codec"])
    small = key in ("type", "codec")
    return replace(column, stated={key: draw.randrange(-1, 12) if small else draw.choice([*HUGE, 4, 100])})


def _bomb(column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated) -> Column:
    size_bytes = draw.choice([1 << 24, (1 << 24) + 1, 1 << 28, 1 << 30])
    page = Page(
        bomb(size_bytes), rows, plain_bytes=draw.choice([size_bytes, size_bytes % (1 << 24), 1 << 24])
    )
    return replace(
        column, pages=[page] * draw.choice([1, 1, 50]), stated={"codec": forge.ZSTD, "packed": len(page.body)}
    )


def _dictionary(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    body = draw.choice([forge.texts([b"x" * (15 << 20)]), forge.numbers([7] * 3), b"", forge.texts([b"log"])])
    many = draw.choice([1, 1, 2, *HUGE])
    index = draw.choice([0, 0, 1, 255])
    runs = draw.choice([rows, *HUGE[:4]])
    first = Page(body, many, kind=forge.DICTIONARY_PAGE)
    data = Page(forge.dictionary_indices(index, runs, draw.choice([0, 1, 8, 32, 33])), rows, forge.DICTIONARY)
    declared["rows"] = draw.choice([rows, rows, 500_000])
    return replace(column, pages=[first] * draw.choice([1, 1, 2]) + [data])


def _differences(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    encoding = draw.choice([forge.DELTA, forge.DELTA_LENGTHS, forge.DELTA_TEXTS])
    blocks = draw.choice([b"", bytes(5) * 20, b"\0" + bytes([255] * 4) + bytes(500)])
    deltas = forge.deltas(
        draw.choice([rows, *HUGE]),
        blocks,
        draw.choice([128, 0, 1 << 20, 1 << 62]),
        draw.choice([4, 0, 1, 1 << 40]),
        draw.choice([0, 1, 1 << 40, -5]),
    )
    return replace(column, pages=[Page(deltas * draw.choice([1, 2]) + b"x" * 40, rows, encoding)])


def _shared_beginnings(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    """Each text but the first is the one before it and nothing more."""
    length = draw.choice([1 << 12, 1 << 20, 7 << 20, 9 << 20])
    prefixes = _delta_sequence([0] + [length] * (rows - 1))
    suffixes = _delta_sequence([length] + [0] * (rows - 1)) + b"y" * length
    return replace(column, pages=[Page(prefixes + suffixes, rows, forge.DELTA_TEXTS)])


def _delta_sequence(values: Sequence[int]) -> bytes:
    """One block of 128 differences of 32 bits."""
    steps = [after - before for before, after in pairwise(values)]
    least = min(steps, default=0)
    packed = b"".join((step - least).to_bytes(4, "little") for step in steps)
    if not steps:
        return forge.deltas(len(values), first=values[0] if values else 0)
    block = forge.zigzag(least) + bytes([32, 0, 0, 0]) + packed.ljust(128, b"\0")
    return forge.deltas(len(values), block, first=values[0])


def _texts(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    choice = draw.choice(
        [*ESCAPES, b"\xff\xfe", b"x" * (8 << 10), b"x" * (1 << 20), b"", b"=1+1", b"../../etc"]
    )
    return replace(column, pages=[Page(forge.texts([choice] * rows), rows)])


def _schema(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    leaf = [(1, INT64), (3, 0), (4, b"a")]
    stated["schema"] = draw.choice(
        [
            [[(4, b"r"), (5, 3)], leaf],
            [[(4, b"r"), (5, 1)]] * 5000 + [leaf],
            [[(4, b"r"), (5, 20000)], *[leaf] * 20000],
            [[(4, b"r"), (5, -1)], leaf],
            [[(4, b"r"), (5, 1 << 30)], leaf],
            [leaf],
        ]
    )
    return column


def _lists(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    stated[draw.choice(["group_list", "column_list"])] = draw.choice([0, 1 << 20, 1 << 31, 1 << 62])
    return column


def _groups(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    stated["groups"] = draw.choice([0, 2, 500])
    stated["group_rows"] = draw.choice([0, rows, 1 << 20])
    declared["rows"] = stated["groups"] * draw.choice([0, rows])
    return column


def _end(column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated) -> Column:
    stated["footer"] = draw.choice([0, 1, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, (1 << 32) - 1])
    stated["tail"] = draw.choice([b"PAR1", b"PARE", b"PAR2", b""])
    return column


def _header(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    more = draw.choice(
        [
            [(15, b"x" * 70_000)],
            [(15, forge.Listed([1, 2], 1 << 40))],
            [(15, [(1, [(1, [(1, [(1, [(1, [(1, [(1, [(1, [(1, 1)])])])])])])])])])],
            [(100, Wide(1))],
        ]
    )
    kind = draw.choice([0, 0, 1, 2, 3, 9, -1])
    return _paged(column, lambda page: replace(page, kind=kind, more=more if draw.random() < 0.5 else ()))


def _version_2(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    lengths = [draw.choice([0, 1, 1 << 30, -1]) for _ in range(2)]
    return replace(
        _paged(
            column,
            lambda page: replace(page, kind=forge.DATA_V2, level_bytes=lengths[0], nulls=lengths[1]),
        ),
        codec=draw.choice([forge.UNCOMPRESSED, forge.ZSTD]),
    )


def _regular(
    column: Column, rows: int, draw: random.Random, stated: dict[str, Any], declared: Stated
) -> Column:
    """As many rows as any file may state, all the same."""
    many = draw.choice([500_000, 524_288, 524_289])
    stated["rows"] = stated["group_rows"] = declared["rows"] = many
    data = Page(forge.dictionary_indices(0, many), many, forge.DICTIONARY)
    return replace(column, pages=[Page(forge.numbers([1]), 1, kind=forge.DICTIONARY_PAGE), data])


LIES: list[Lie] = [
    _rows, _values, _sizes, _metadata, _bomb, _dictionary, _differences, _shared_beginnings, _texts, _schema,
    _lists, _groups, _end, _header, _version_2, _regular,
]  # fmt: skip
