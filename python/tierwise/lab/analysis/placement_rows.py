"""Placements beside the baseline: speed-ups with intervals, and the cheapest of the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tierwise.lab.analysis.measures import whole_run_part
from tierwise.lab.analysis.multi_host_ratios import MultiHostRatio, multi_host_ratio
from tierwise.lab.analysis.placement_summary import (
    Moved,
    PlacementSummary,
    all_moved_roles,
    cost_per_month,
    device_aliases,
    moved_roles,
    moves_files_to_memory,
    summarise_placement,
)
from tierwise.model.names import group_by_key
from tierwise.model.placement import price_order, recommended_placement
from tierwise.model.statistics import BoundKind, Interval, RatioVerdict, ratio_interval
from tierwise.results import RunResult, StrictModel

Measure = Literal["elapsed", "rate"]
"""Measure for comparing placements: elapsed time if every run did the same work, else rate."""


class PlacementRow(StrictModel):
    """One placement beside the baseline."""

    summary: PlacementSummary
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
    by_host: MultiHostRatio | None = None
    """The speed-up by host, of a study on several hosts; ``speedup`` is then over these."""

    @property
    def placement(self) -> str:
        """Name of the placement."""
        return self.summary.placement

    @property
    def verdict(self) -> RatioVerdict:
        """Reading of the speed-up."""
        return self.speedup.verdict if self.speedup else RatioVerdict.UNKNOWN

    @property
    def saving_per_role(self) -> float:
        """Share of the baseline's time that it saves per moved role."""
        return (
            (1 - 1 / self.speedup.estimate) / max(1, len(all_moved_roles(self.moved)))
            if self.speedup
            else 0.0
        )


@dataclass(frozen=True)
class FirstPlacement:
    """The placement to adopt first; ``None`` if none is faster than the baseline."""

    row: PlacementRow | None = None
    alike: Sequence[PlacementRow] = ()
    """The others that cannot be told from the best, which cost as much or more; the cheapest first."""


Runs = Mapping[str, Sequence[RunResult]]
"""Placement -> its runs."""


@dataclass(frozen=True)
class RepeatTimes:
    """Seconds of repeats. ``capped``: at least one was stopped and would have taken longer.

    ``blocks``: host and number of each repeat's block.
    """

    values_s: list[float]
    capped: bool
    blocks: list[tuple[str, int]]


def speedup_of(of: RepeatTimes, over: RepeatTimes, seed: int) -> Interval | None:
    """Speed-up of ``of`` over ``over``; ``None`` if either is empty or both were stopped."""
    if not of.values_s or not over.values_s or (of.capped and over.capped):
        return None
    if _several_hosts(of, over):
        hosted = multi_host_speedup(of, over)
        return hosted.here if hosted else None
    return ratio_interval(
        over.values_s, of.values_s, seed=seed, above_capped=over.capped, below_capped=of.capped
    )


def multi_host_speedup(of: RepeatTimes, over: RepeatTimes) -> MultiHostRatio | None:
    """The speed-up from pairs within blocks; ``None`` without any, or if only one host was used."""
    of_s, over_s = (dict(zip(samples.blocks, samples.values_s, strict=False)) for samples in (of, over))
    pairs = group_by_key(
        (block[0], math.log(over_s[block] / of_s[block])) for block in sorted(of_s.keys() & over_s.keys())
    )
    if not pairs or not _several_hosts(of, over) or (of.capped and over.capped):
        return None
    return multi_host_ratio(
        pairs, BoundKind.AT_LEAST if over.capped else BoundKind.AT_MOST if of.capped else BoundKind.EXACT
    )


def _several_hosts(of: RepeatTimes, over: RepeatTimes) -> bool:
    return len({host for host, _ in (*of.blocks, *over.blocks)}) > 1


def comparison_measure(runs: Sequence[RunResult]) -> Measure:
    """Elapsed time if every valid run did the same number of transactions, or laps; otherwise rate."""
    work = {run.transactions for run in runs if run.status == "ok" and not run.laps}
    return "elapsed" if len(work) <= 1 else "rate"


def seconds_per_work(runs: Sequence[RunResult], measure: Measure) -> RepeatTimes:
    """Seconds per run (by elapsed) or per transaction (by rate), of the valid runs."""
    costs: list[tuple[float, RunResult]] = []
    capped = False
    for run, part in ((run, whole_run_part(run)) for run in runs if run.status == "ok"):
        work = 1 if measure == "elapsed" else part.transactions
        capped |= bool(part.elapsed_s) and bool(part.capped)
        if part.elapsed_s and work:
            costs.append((part.elapsed_s / work, run))
    return RepeatTimes([cost for cost, _ in costs], capped, [host_block_of(run) for _, run in costs])


def host_block_of(run: RunResult) -> tuple[str, int]:
    """Host and number of its block; repeats of one study may have been merged from several machines."""
    return (run.host.name if run.host else run.machine.host), run.repeat


def _speedup(
    of: Sequence[RunResult], over: Sequence[RunResult], measure: Measure, seed: int
) -> Interval | None:
    return speedup_of(seconds_per_work(of, measure), seconds_per_work(over, measure), seed)


def build_placement_rows(
    runs: Runs, baseline: str, measure: Measure, seed: int
) -> tuple[list[PlacementRow], FirstPlacement]:
    """One row for each placement, in the order given, and the placement to adopt first."""
    same_device = device_aliases(run for group in runs.values() for run in group)
    rows = [_row(group, runs.get(baseline, []), measure, seed, same_device) for group in runs.values()]

    def compare(of: str, over: str) -> Interval | None:
        return _speedup(runs[of], runs[over], measure, seed)

    first = first_placement_of([row for row in rows if not row.is_baseline], compare)
    if first.row is not None:
        rows = [_with_further(row, first.row, runs, measure, seed) for row in rows]
    return rows, first


def _row(
    runs: Sequence[RunResult],
    baseline: Sequence[RunResult],
    measure: Measure,
    seed: int,
    same_device: Mapping[str, str],
) -> PlacementRow:
    is_baseline = bool(baseline) and runs[0].placement == baseline[0].placement
    moved = moved_roles(runs[0], baseline[0], same_device) if baseline else {}
    chosen = next((run for run in runs if run.status == "ok"), runs[0])
    return PlacementRow(
        summary=summarise_placement(runs[0].placement, runs, seed),
        is_baseline=is_baseline,
        moved=moved,
        speedup=None if is_baseline else _speedup(runs, baseline, measure, seed),
        further=None,
        cost_per_month=cost_per_month(chosen),
        new_per_month=cost_per_month(chosen, moved),
        in_memory=moves_files_to_memory(chosen, moved),
        by_host=None
        if is_baseline
        else multi_host_speedup(seconds_per_work(runs, measure), seconds_per_work(baseline, measure)),
    )


def _with_further(
    row: PlacementRow, first: PlacementRow, runs: Runs, measure: Measure, seed: int
) -> PlacementRow:
    if not all_moved_roles(row.moved) > all_moved_roles(first.moved):
        return row
    further = _speedup(runs[row.placement], runs[first.placement], measure, seed)
    return row.model_copy(update={"further": further})


Compare = Callable[[str, str], Interval | None]
"""Gives the speed-up of one placement over another; ``None`` if it is not known."""


def first_placement_of(rows: Sequence[PlacementRow], compare: Compare) -> FirstPlacement:
    """The placement to adopt first, and the others that cannot be told from the best.

    The best saves most time per moved role; one that moves no role is faster by chance. A placement cannot be
    told from the best if the intervals of their speed-ups overlap, or if that of the best over it includes 1.
    Of these, the cheapest comes first, by the rule of ``advise``.

    ``rows`` are all placements but the baseline, with speed-ups in whole runs or in one lap.
    """
    faster = [row for row in rows if row.moved and row.verdict is RatioVerdict.FASTER]
    best = max(faster, key=lambda row: row.saving_per_role, default=None)
    if best is None:
        return FirstPlacement()

    def alike(row: PlacementRow) -> bool:
        if row is best or best.new_per_month is None:
            return row is best  # nothing is known to be cheaper than what has no price
        step = compare(best.placement, row.placement)
        return _overlap(best.speedup, row.speedup) or step is None or step.verdict is not RatioVerdict.FASTER

    by_price = sorted(faster, key=_by_price)
    first = recommended_placement(by_price, alike)
    return FirstPlacement(first, [row for row in by_price if row is not first and alike(row)])


def _by_price(row: PlacementRow) -> tuple[bool, float, int, int, float]:
    moves, devices = len(all_moved_roles(row.moved)), len(row.moved)
    return price_order(row.new_per_month, moves, devices, row.saving_per_role, row.in_memory)


def _overlap(best: Interval | None, other: Interval | None) -> bool:
    if best is None or other is None or best.low is None or other.high is None:
        return True
    return best.low <= other.high
