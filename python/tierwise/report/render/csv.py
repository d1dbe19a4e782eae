"""The tables of a document as CSV: figures in the unit of their column, without rounding."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from tierwise.model.names import printable
from tierwise.report.document import Cell, Document, Table, flat

_FORMULA = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet takes for the beginning of a formula, also as wide characters."""
_NUMBER = re.compile(r"[+-](?:\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?(?:\s?(?:%|[a-zA-Zµ/]{1,12}))?)?")


def to_csv(document: Document) -> str:
    """All tables, separated by an empty line; intervals have columns for their ends. Texts are omitted."""
    return csv_text(_all_rows(document))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV; a text that a spreadsheet would run as a formula gets an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_inert(cell) for cell in row] for row in rows)
    return printable(out.getvalue(), "\n")


def _inert(cell: object) -> object:
    runs = isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def _all_rows(document: Document) -> Iterator[list[str]]:
    for number, table in enumerate(block for block in flat(document) if isinstance(block, Table)):
        if number:
            yield []
        yield from _rows(table)


def _rows(table: Table) -> Iterator[list[str]]:
    spans = [any(row[number].low is not None for row in table.rows) for number in range(len(table.columns))]
    names = [column.name.replace("\n", " ") for column in table.columns]
    yield [name for one, has in zip(names, spans, strict=True) for name in _spread(one, has)]
    for row in table.rows:
        yield [text for cell, has in zip(row, spans, strict=True) for text in _values(cell, has)]


def _spread(name: str, has_interval: bool) -> list[str]:
    return [name, f"{name} low", f"{name} high"] if has_interval else [name]


def _values(cell: Cell, has_interval: bool) -> list[str]:
    value = cell.text.replace("\n", "; ") if cell.value is None else repr(cell.value)
    ends = ["" if end is None else repr(end) for end in (cell.low, cell.high)]
    return [value, *ends] if has_interval else [value]
