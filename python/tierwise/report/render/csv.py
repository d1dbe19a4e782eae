"""The tables of a document as CSV: figures in the unit of their column, without rounding."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from tierwise.report.document import Cell, Document, Table, flat


def to_csv(document: Document) -> str:
    """All tables, separated by an empty line; intervals have columns for their ends. Texts are omitted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, table in enumerate(block for block in flat(document) if isinstance(block, Table)):
        if number:
            writer.writerow([])
        writer.writerows(_rows(table))
    return out.getvalue()


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
