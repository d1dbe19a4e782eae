"""The table of a study's hosts."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.lab.analysis.conditions import HostRow
from tierwise.report import numbers
from tierwise.report.document import Cell, Table, Tone, figure, table


def host_table(hosts: Sequence[HostRow]) -> Table:
    """Blocks, relative time and speed-ups of each host."""
    placements = list(dict.fromkeys(name for one in hosts for name in one.speedups))
    shown = table(["host"], ["blocks", "time of\nall hosts", *placements])
    for one in hosts:
        shown.add(
            one.host,
            figure(one.blocks, numbers.count),
            _ratio(one.cost, one.cost_differs),
            *(_ratio(one.speedups.get(name), name in one.differing) for name in placements),
        )
    return shown


def _ratio(value: float | None, differs: bool) -> Cell:
    if value is None:
        return Cell(numbers.NONE)
    return Cell(numbers.ratio(value), Tone.WORSE if differs else Tone.PLAIN, value=value)
