"""A document as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.names import printable
from tierwise.report.document import Document, Table, Text, Tone, flat


def to_markdown(document: Document) -> str:
    """The whole document; a table is a table of pipes."""
    blocks = [_text(block) if isinstance(block, Text) else _table(block) for block in flat(document)]
    return printable("\n\n".join(block for block in blocks if block) + "\n", "\n")


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
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
