"""Placements beside the baseline: speed-ups with intervals, and the placement to adopt first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tierwise.model.statistics import Interval, Verdict, ratio_interval
from tierwise.report.study.measures import run_part
from tierwise.report.study.moves import Moved, moved_roles, roles_of
from tierwise.report.study.prices import cost_per_month
from tierwise.report.study.summary import Summary, summarise
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

    @property
    def placement(self) -> str:
        """Name of the placement."""
        return self.summary.placement

    @property
    def verdict(self) -> Verdict:
        """Reading of the speed-up."""
        return self.speedup.verdict if self.speedup else Verdict.UNKNOWN


Runs = Mapping[str, Sequence[RunResult]]
"""Placement -> its runs."""


@dataclass(frozen=True)
class Times:
    """Seconds of repeats. ``capped``: at least one was stopped and would have taken longer."""

    values_s: list[float]
    capped: bool


def speedup_of(of: Times, over: Times, seed: int) -> Interval | None:
    """Speed-up of ``of`` over ``over``; ``None`` if either is empty or both were stopped."""
    if not of.values_s or not over.values_s or (of.capped and over.capped):
        return None
    return ratio_interval(
        over.values_s, of.values_s, seed=seed, above_capped=over.capped, below_capped=of.capped
    )


def measure_of(runs: Sequence[RunResult]) -> Measure:
    """Elapsed time if every valid run did the same number of transactions, or laps; otherwise rate."""
    work = {run.transactions for run in runs if run.status == "ok" and not run.laps}
    return "elapsed" if len(work) <= 1 else "rate"


def costs_of(runs: Sequence[RunResult], measure: Measure) -> Times:
    """Seconds per run (by elapsed) or per transaction (by rate), of the valid runs."""
    valid = [part for run in runs if run.status == "ok" and (part := run_part(run)).elapsed_s]
    capped = any(part.capped for part in valid)
    if measure == "elapsed":
        return Times([part.elapsed_s for part in valid if part.elapsed_s], capped)
    done = [(part.elapsed_s, part.transactions) for part in valid]
    return Times([elapsed_s / count for elapsed_s, count in done if elapsed_s and count], capped)


def _speedup(
    of: Sequence[RunResult], over: Sequence[RunResult], measure: Measure, seed: int
) -> Interval | None:
    return speedup_of(costs_of(of, measure), costs_of(over, measure), seed)


def build_rows(runs: Runs, baseline: str, measure: Measure, seed: int) -> list[Row]:
    """One row for each placement, in the order given."""
    rows = [_row(group, runs.get(baseline, []), measure, seed) for group in runs.values()]
    first = first_move(rows)
    return [_with_further(row, first, runs, measure, seed) for row in rows] if first else rows


def first_move(rows: Sequence[Row]) -> Row | None:
    """The significantly faster placement that saves most time per moved role."""
    faster = [row for row in rows if row.verdict is Verdict.FASTER]
    return max(faster, key=lambda row: saving_per_role(row.speedup, row.moved), default=None)


def _row(runs: Sequence[RunResult], baseline: Sequence[RunResult], measure: Measure, seed: int) -> Row:
    is_baseline = bool(baseline) and runs[0].placement == baseline[0].placement
    return Row(
        summary=summarise(runs[0].placement, runs, seed),
        is_baseline=is_baseline,
        moved=moved_roles(runs[0], baseline[0]) if baseline else {},
        speedup=None if is_baseline else _speedup(runs, baseline, measure, seed),
        further=None,
        cost_per_month=cost_per_month(next((run for run in runs if run.status == "ok"), runs[0])),
    )


def saving_per_role(speedup: Interval | None, moved: Moved) -> float:
    """Share of the baseline's time that a placement saves per moved role."""
    return (1 - 1 / speedup.estimate) / max(1, len(roles_of(moved))) if speedup else 0.0


def _with_further(row: Row, first: Row, runs: Runs, measure: Measure, seed: int) -> Row:
    if not roles_of(row.moved) > roles_of(first.moved):
        return row
    further = _speedup(runs[row.placement], runs[first.placement], measure, seed)
    return row.model_copy(update={"further": further})
