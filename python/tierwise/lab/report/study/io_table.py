"""The table of I/O by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tierwise.lab.analysis.io_by_role import IoRow
from tierwise.report import numbers
from tierwise.report.document import Cell, Table, figure, table

_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "reads": ("reads", numbers.count),
    "mean_read_bytes": ("mean size", numbers.size),
    "writes": ("writes", numbers.count),
    "mean_write_bytes": ("mean size ", numbers.size),
    "flushes": ("flushes", numbers.count),
    "read_bytes": ("read", numbers.size),
    "write_bytes": ("written", numbers.size),
    "busy_share": ("busy", numbers.percent),
    "queue_depth": ("queue depth", lambda depth: numbers.significant(depth, 2)),
} | {
    f"{kind}_{percentile}_us": (f"{kind} {percentile}", numbers.microseconds)
    for kind in ("read", "write", "flush")
    for percentile in ("p50", "p99")
}
"""Field of a row -> its column and its format, in the order of the table."""


def io_table(rows: Mapping[str, Sequence[IoRow]], colours: Mapping[str, str]) -> Table:
    """Requests of each role, then of whole shared devices, by placement; medians over the valid runs."""
    found = table(["placement", "role", "device"], [name for name, _ in _COLUMNS.values()])
    for placement, several in rows.items():
        for row in several:
            cells = (figure(getattr(row, field), shown) for field, (_, shown) in _COLUMNS.items())
            found.add(Cell(placement, colour=colours[placement]), row.name, row.device, *cells)
    return found
