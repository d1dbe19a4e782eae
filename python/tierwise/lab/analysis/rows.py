"""Placements beside the baseline: speed-ups with intervals, and the cheapest of the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tierwise.lab.analysis.host_blocks import HostedRatio, hosted_ratio
from tierwise.lab.analysis.measures import run_part
from tierwise.lab.analysis.summary import (
    Moved,
    Summary,
    cost_per_month,
    is_in_memory,
    moved_roles,
    roles_of,
    summarise,
)
from tierwise.model.names import gathered
from tierwise.model.placement import price_order, recommended
from tierwise.model.statistics import Bound, Interval, Verdict, ratio_interval
from tierwise.results import Record, RunResult

Measure = Literal["elapsed", "rate"]
"""Measure for comparing placements: elapsed time if every run did the same work, else rate."""


class Row(Record):
    """One placement beside the baseline."""

    summary: Summary
    is_baseline: bool
    moved: Moved
    speedup: Interval | None
    """Baseline over this placement: above 1 is faster. ``None`` if either has no valid run."""
    further: Interval | None
    """Speed-up over the first move, for a placement that moves the same roles and more."""
    cost_per_month: float | None
    """Price of the placement's devices; ``None`` if one has none."""
    new_per_month: float | None
    """Price of those that hold files which the baseline keeps elsewhere; ``None`` if one has none."""
    in_memory: bool
    """Whether files that must last are kept in memory."""
    by_host: HostedRatio | None = None
    """The speed-up by host, of a study on several hosts; ``speedup`` is then over these."""

    @property
    def placement(self) -> str:
        """Name of the placement."""
        return self.summary.placement

    @property
    def verdict(self) -> Verdict:
        """Reading of the speed-up."""
        return self.speedup.verdict if self.speedup else Verdict.UNKNOWN

    @property
    def saving_per_role(self) -> float:
        """Share of the baseline's time that it saves per moved role."""
        return (1 - 1 / self.speedup.estimate) / max(1, len(roles_of(self.moved))) if self.speedup else 0.0


@dataclass(frozen=True)
class First:
    """The placement to adopt first; ``None`` if none is faster than the baseline.

    Attributes:
        row: its row.
        alike: the others that cannot be told from the best, which cost as much or more; the cheapest first.
    """

    row: Row | None = None
    alike: Sequence[Row] = ()


Runs = Mapping[str, Sequence[RunResult]]
"""Placement -> its runs."""


@dataclass(frozen=True)
class Times:
    """Seconds of repeats. ``capped``: at least one was stopped and would have taken longer.

    ``blocks``: host and number of each repeat's block, of a study on many hosts; otherwise empty.
    """

    values_s: list[float]
    capped: bool
    blocks: list[tuple[str, int]] = field(default_factory=list)


def speedup_of(of: Times, over: Times, seed: int) -> Interval | None:
    """Speed-up of ``of`` over ``over``; ``None`` if either is empty or both were stopped."""
    if not of.values_s or not over.values_s or (of.capped and over.capped):
        return None
    if _several_hosts(of, over):
        hosted = hosted_speedup(of, over)
        return hosted.here if hosted else None
    return ratio_interval(
        over.values_s, of.values_s, seed=seed, above_capped=over.capped, below_capped=of.capped
    )


def hosted_speedup(of: Times, over: Times) -> HostedRatio | None:
    """The speed-up from pairs within blocks; ``None`` without any, or if only one host was used."""
    of_s, over_s = (dict(zip(samples.blocks, samples.values_s, strict=False)) for samples in (of, over))
    pairs = gathered(
        (block[0], math.log(over_s[block] / of_s[block])) for block in sorted(of_s.keys() & over_s.keys())
    )
    if not pairs or not _several_hosts(of, over) or (of.capped and over.capped):
        return None
    return hosted_ratio(pairs, Bound.AT_LEAST if over.capped else Bound.AT_MOST if of.capped else Bound.EXACT)


def _several_hosts(of: Times, over: Times) -> bool:
    return len({host for host, _ in (*of.blocks, *over.blocks)}) > 1


def measure_of(runs: Sequence[RunResult]) -> Measure:
    """Elapsed time if every valid run did the same number of transactions, or laps; otherwise rate."""
    work = {run.transactions for run in runs if run.status == "ok" and not run.laps}
    return "elapsed" if len(work) <= 1 else "rate"


def costs_of(runs: Sequence[RunResult], measure: Measure) -> Times:
    """Seconds per run (by elapsed) or per transaction (by rate), of the valid runs."""
    costs: list[tuple[float, RunResult]] = []
    capped = False
    for run, part in ((run, run_part(run)) for run in runs if run.status == "ok"):
        work = 1 if measure == "elapsed" else part.transactions
        capped |= bool(part.elapsed_s) and bool(part.capped)
        if part.elapsed_s and work:
            costs.append((part.elapsed_s / work, run))
    blocks = [(run.host.name, run.repeat) for _, run in costs if run.host]
    return Times([cost for cost, _ in costs], capped, blocks if len(blocks) == len(costs) else [])


def _speedup(
    of: Sequence[RunResult], over: Sequence[RunResult], measure: Measure, seed: int
) -> Interval | None:
    return speedup_of(costs_of(of, measure), costs_of(over, measure), seed)


def build_rows(runs: Runs, baseline: str, measure: Measure, seed: int) -> tuple[list[Row], First]:
    """One row for each placement, in the order given, and the placement to adopt first."""
    rows = [_row(group, runs.get(baseline, []), measure, seed) for group in runs.values()]

    def compare(of: str, over: str) -> Interval | None:
        return _speedup(runs[of], runs[over], measure, seed)

    first = first_of([row for row in rows if not row.is_baseline], compare)
    if first.row is not None:
        rows = [_with_further(row, first.row, runs, measure, seed) for row in rows]
    return rows, first


def _row(runs: Sequence[RunResult], baseline: Sequence[RunResult], measure: Measure, seed: int) -> Row:
    is_baseline = bool(baseline) and runs[0].placement == baseline[0].placement
    moved = moved_roles(runs[0], baseline[0]) if baseline else {}
    chosen = next((run for run in runs if run.status == "ok"), runs[0])
    return Row(
        summary=summarise(runs[0].placement, runs, seed),
        is_baseline=is_baseline,
        moved=moved,
        speedup=None if is_baseline else _speedup(runs, baseline, measure, seed),
        further=None,
        cost_per_month=cost_per_month(chosen),
        new_per_month=cost_per_month(chosen, moved),
        in_memory=is_in_memory(chosen, moved),
        by_host=None if is_baseline else hosted_speedup(costs_of(runs, measure), costs_of(baseline, measure)),
    )


def _with_further(row: Row, first: Row, runs: Runs, measure: Measure, seed: int) -> Row:
    if not roles_of(row.moved) > roles_of(first.moved):
        return row
    further = _speedup(runs[row.placement], runs[first.placement], measure, seed)
    return row.model_copy(update={"further": further})


Compare = Callable[[str, str], Interval | None]
"""Gives the speed-up of one placement over another; ``None`` if it is not known."""


def first_of(rows: Sequence[Row], compare: Compare) -> First:
    """The placement to adopt first, and the others that cannot be told from the best.

    The best saves most time per moved role. A placement cannot be told from it if the intervals of their
    speed-ups overlap, or if that of the best over it includes 1. Of these, the cheapest comes first, by the
    rule of ``advise``.

    Args:
        rows: every placement but the baseline, with its speed-up in whole runs or in one lap.
        compare: over the same repeats.
    """
    faster = [row for row in rows if row.verdict is Verdict.FASTER]
    best = max(faster, key=lambda row: row.saving_per_role, default=None)
    if best is None:
        return First()

    def alike(row: Row) -> bool:
        if row is best or best.new_per_month is None:
            return row is best  # nothing is known to be cheaper than what has no price
        step = compare(best.placement, row.placement)
        return _overlap(best.speedup, row.speedup) or step is None or step.verdict is not Verdict.FASTER

    by_price = sorted(faster, key=_by_price)
    first = recommended(by_price, alike)
    return First(first, [row for row in by_price if row is not first and alike(row)])


def _by_price(row: Row) -> tuple[bool, float, int, float]:
    return price_order(row.new_per_month, len(roles_of(row.moved)), row.saving_per_role, row.in_memory)


def _overlap(best: Interval | None, other: Interval | None) -> bool:
    if best is None or other is None or best.low is None or other.high is None:
        return True
    return best.low <= other.high
