"""Hosts of a study on several: their speed and gains side by side, and those that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from tierwise.model.host_blocks import differing_hosts
from tierwise.report import numbers
from tierwise.report.document import Cell, Table, Tone, figure, table
from tierwise.report.study.rows import Measure, Row, Runs, costs_of
from tierwise.results import Record


class HostRow(Record):
    """One host beside the others."""

    host: str
    blocks: int
    """Complete ones."""
    cost: float
    """Its time for the same work over that of all hosts; the geometric mean of its complete blocks."""
    cost_differs: bool
    """Whether that differs from the others' by more than the noise within hosts."""
    speedups: dict[str, float]
    """Placement -> speed-up on this host."""
    differing: list[str]
    """Placements whose speed-up differs from the other hosts' in the same sense."""


def host_rows(by_placement: Runs, rows: Sequence[Row], measure: Measure) -> list[HostRow]:
    """A row for each host with a complete block; none unless there are several."""
    levels = _levels(by_placement, measure)
    if len(levels) < 2:
        return []
    means = {host: fmean(values) for host, values in levels.items()}
    mean, differing = fmean(means.values()), differing_hosts(levels)
    by_host = {row.placement: row.by_host for row in rows if row.by_host is not None}
    return [
        HostRow(
            host=host,
            blocks=len(levels[host]),
            cost=math.exp(means[host] - mean),
            cost_differs=host in differing,
            speedups={name: one.of_hosts[host] for name, one in by_host.items() if host in one.of_hosts},
            differing=[name for name, one in by_host.items() if host in one.differing],
        )
        for host in sorted(levels)
    ]


def host_caveats(hosts: Sequence[HostRow], rows: Sequence[Row]) -> list[str]:
    """A sentence for each host that differs by more than the noise, and on what to expect elsewhere."""
    found = [
        f"host {one.host} takes {numbers.ratio(one.cost)} times the mean time of all hosts, which is more "
        "than the noise within hosts; ratios are within a host, so this cancels"
        for one in hosts
        if one.cost_differs
    ]
    for row in rows:
        if row.by_host is None or not row.by_host.differing:
            continue
        named = ", ".join(
            f"{host} ({numbers.ratio(row.by_host.of_hosts[host])})" for host in row.by_host.differing
        )
        span = numbers.interval(row.by_host.elsewhere) if row.by_host.elsewhere else ""
        found.append(
            f"the gain of {row.placement} differs between hosts by more than the noise within them: {named}; "
            f"for a further host expect the {span}"
        )
    return [f"{one[0].upper()}{one[1:]}." for one in found]


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


def _levels(by_placement: Runs, measure: Measure) -> dict[str, list[float]]:
    """Host -> mean logarithm of the costs in each of its complete blocks."""
    costs: dict[tuple[str, int], list[float]] = {}
    for runs in by_placement.values():
        times = costs_of(runs, measure)
        for block, cost_s in zip(times.blocks, times.values_s, strict=False):
            costs.setdefault(block, []).append(math.log(cost_s))
    found: dict[str, list[float]] = {}
    for (host, _), logs in sorted(costs.items()):
        if len(logs) == len(by_placement):
            found.setdefault(host, []).append(fmean(logs))
    return found
