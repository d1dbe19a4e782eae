"""Memory instead of a move, as a table and in words."""

from __future__ import annotations

from tierwise.advise import Advice
from tierwise.advise.alternatives import MemoryMove, equal_memory
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Column, ColumnKind, Table, Text, Tone, figure
from tierwise.report.recording.money_words import cents, price_text
from tierwise.report.recording.prediction import gain_cells, gain_headings

TITLE = "Memory instead"


def memory_blocks(advice: Advice, titled: bool = True) -> list[Block]:
    """Each size of memory with its gain and price, and how it compares with the move; nothing without one."""
    if not advice.memory:
        return []
    return [
        _table(advice, TITLE if titled else ""),
        Text(_comparison(advice)),
        *([price_text("memory", advice.memory_price)] if advice.memory_price else []),
    ]


def _table(advice: Advice, title: str) -> Table:
    once = advice.recorded.once
    figures = ("more", "engine's\nbuffer", *gain_headings(advice.run.unit, advice.currency, once))
    table = Table(
        [Column("memory", ColumnKind.NAME), *(Column(name) for name in figures), Column("")], title=title
    )
    for move in advice.memory:
        table.add(
            numbers.size(move.memory_bytes),
            figure(move.added_bytes or None, numbers.size),
            numbers.NONE if move.buffer_bytes is None else numbers.size(move.buffer_bytes),
            *gain_cells(move, once),
            "holds all tables and indexes" if move.holds_all else "",
            tone=Tone.PLAIN if move.worthwhile else Tone.QUIET,
        )
    return table


def _comparison(advice: Advice) -> str:
    """What memory costs that gains as much as the recommended move."""
    option = advice.decision.option
    first = next((move for move in advice.memory if move.worthwhile), None)
    if first is None:
        return "More memory gains nothing that can be told from chance."
    if option.stays:
        where = f"{numbers.size(first.added_bytes)} more memory" if first.added_bytes else "no more memory"
        return f"No move is recommended. The smallest size that helps needs {where}."
    same = equal_memory(advice.memory, option)
    if same is None:
        return "No size of memory gains as much as the recommended move."
    cost = "" if same.cost_per_month is None else _cost(same, option.cost_per_month, advice.currency)
    if not same.added_bytes:
        return f"A larger buffer in the memory that is there gains as much as the recommended move{cost}."
    return f"{numbers.size(same.added_bytes)} more memory gains as much as the recommended move{cost}."


def _cost(move: MemoryMove, moved_per_month: float, currency: str) -> str:
    symbol = SYMBOLS.get(currency, currency)
    return f", for {cents(move.cost_per_month or 0.0)} {symbol} a month instead of {cents(moved_per_month)}"
