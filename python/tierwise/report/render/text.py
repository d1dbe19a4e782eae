"""A document as text: as Markdown, as CSV in the unit of each column, and for a terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

import rich.table
import rich.text
from rich.cells import cell_len

from tierwise.model.names import printable
from tierwise.report.document import Cell, Column, ColumnKind, Document, Table, Text, Title, Tone, flat_blocks

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
    for number, table in enumerate(block for block in flat_blocks(document) if isinstance(block, Table)):
        if number:
            yield []
        yield from _rows(table)


def _rows(table: Table) -> Iterator[list[str]]:
    spans = [any(row[number].low is not None for row in table.rows) for number in range(len(table.columns))]
    names = [column.name.replace("\n", " ") for column in table.columns]
    yield [name for column, has in zip(names, spans, strict=True) for name in _spread(column, has)]
    for row in table.rows:
        yield [text for cell, has in zip(row, spans, strict=True) for text in _values(cell, has)]


def _spread(name: str, has_interval: bool) -> list[str]:
    return [name, f"{name} low", f"{name} high"] if has_interval else [name]


def _values(cell: Cell, has_interval: bool) -> list[str]:
    value = cell.text.replace("\n", "; ") if cell.value is None else repr(cell.value)
    ends = ["" if end is None else repr(end) for end in (cell.low, cell.high)]
    return [value, *ends] if has_interval else [value]


_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|(?<=\])\(")
"""What begins HTML, or the address of a link: names of others' files may have either."""


def to_markdown(document: Document) -> str:
    """The whole document; a table is a table of pipes."""
    blocks = [_text(block) if isinstance(block, Text) else _table(block) for block in flat_blocks(document)]
    text = _MARKUP.sub(r"\\\g<0>", "\n\n".join(block for block in blocks if block))
    return printable(f"{text}\n", "\n")


def _text(block: Text) -> str:
    return f"**{block.text.strip()}**" if block.tone is Tone.HEADLINE else block.text.strip()


def _table(table: Table) -> str:
    heading = f"**{table.title.strip()}**\n\n" if table.title else ""
    rule = ["---:" if column.is_figure else "---" for column in table.columns]
    rows = [
        [" ".join([cell.text, *(f"({line.text})" for line in cell.below)]) for cell in row]
        for row in table.rows
    ]
    return heading + "\n".join(map(_row, [[column.name for column in table.columns], rule, *rows]))


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


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
    """Each block in order, with an empty line before and after a table, and before a title."""
    before: Text | Table | None = None
    for block in flat_blocks(document):
        titled = isinstance(block, Title) and not isinstance(before, Title)
        if before is not None and (titled or isinstance(block, Table) or isinstance(before, Table)):
            yield rich.text.Text()
        if isinstance(block, Text):
            yield rich.text.Text(block.text, _STYLES[block.tone])
        else:
            if block.title:
                yield rich.text.Text(block.title, "bold")
            yield _grid(block)
        before = block


def _grid(table: Table) -> rich.table.Table:
    grid = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, column in enumerate(table.columns):
        grid.add_column(
            column.name,
            justify="right" if column.is_figure else "left",
            no_wrap=column.kind is not ColumnKind.WORDS,
            overflow="fold",
            min_width=_least_width(column, [row[number] for row in table.rows]),
        )
    above = ""
    for row in table.rows:
        shown = [Cell("") if row[0].text == above else row[0], *row[1:]]
        grid.add_row(*map(_cell, shown, table.columns))
        above = row[0].text
    return grid


def _least_width(column: Column, cells: Sequence[Cell]) -> int:
    """Minimum width: the widest line, as figures and names are never cut; the longest word if lines fold."""
    texts = [column.name, *(line.text for cell in cells for line in _lines(cell, column))]
    folds = column.kind is ColumnKind.WORDS
    widest = max(
        cell_len(part) for text in texts for part in (text.split() if folds else text.splitlines()) or [""]
    )
    return min(widest, _LONGEST_WORD) if folds else widest


def _lines(cell: Cell, column: Column) -> list[Text]:
    """A name has one line, whatever is in it."""
    text = printable(cell.text, "" if column.kind is ColumnKind.NAME else "\n\t")
    return [Text(text, cell.tone), *cell.below]


def _cell(cell: Cell, column: Column) -> rich.text.Text:
    lines = enumerate(_lines(cell, column))
    parts = [("\n" * (number > 0) + line.text, _STYLES[line.tone]) for number, line in lines]
    return rich.text.Text.assemble(*parts)
