"""A document for a terminal, as renderables of rich."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import rich.table
import rich.text
from rich.cells import cell_len

from tierwise.report.document import Cell, Column, ColumnKind, Document, Table, Text, Tone, flat

_LONGEST_WORD = 24
_STYLES = {
    Tone.PLAIN: "",
    Tone.HEADLINE: "bold",
    Tone.BETTER: "green",
    Tone.WORSE: "red",
    Tone.WARNING: "yellow",
    Tone.QUIET: "dim",
}


def to_rich(document: Document) -> Iterator[rich.table.Table | rich.text.Text]:
    """Each block in order, with an empty line before and after a table."""
    before: Text | Table | None = None
    for block in flat(document):
        if before is not None and (isinstance(block, Table) or isinstance(before, Table)):
            yield rich.text.Text()
        if isinstance(block, Text):
            yield rich.text.Text(block.text, _STYLES[block.tone])
        else:
            if block.title:
                yield rich.text.Text(block.title, "bold")
            yield _table(block)
        before = block


def _table(table: Table) -> rich.table.Table:
    found = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, column in enumerate(table.columns):
        found.add_column(
            column.name,
            justify="right" if column.is_figure else "left",
            no_wrap=column.kind is not ColumnKind.WORDS,
            overflow="fold",
            min_width=_least_width(column, [row[number] for row in table.rows]),
        )
    above = ""
    for row in table.rows:
        found.add_row(*map(_cell, [Cell("") if row[0].text == above else row[0], *row[1:]]))
        above = row[0].text
    return found


def _least_width(column: Column, cells: Sequence[Cell]) -> int:
    """Minimum width: the widest line, as figures and names are never cut; the longest word if lines fold."""
    texts = [column.name, *(cell.text for cell in cells), *(one.text for cell in cells for one in cell.below)]
    folds = column.kind is ColumnKind.WORDS
    widest = max(
        cell_len(part) for text in texts for part in (text.split() if folds else text.splitlines()) or [""]
    )
    return min(widest, _LONGEST_WORD) if folds else widest


def _cell(cell: Cell) -> rich.text.Text:
    lines = [Text(cell.text, cell.tone), *cell.below]
    parts = [("\n" * (number > 0) + line.text, _STYLES[line.tone]) for number, line in enumerate(lines)]
    return rich.text.Text.assemble(*parts)
