"""How far predictions are from measurements: pairs, and what they come to."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from tierwise.predict import Estimate
from tierwise.results.measurements import Record
from tierwise.statistics import FEWEST_REPEATS, Interval, Verdict, median_interval, ratio_interval

MEDIAN_BAR, NINETIETH_BAR, WORST_BAR = 0.05, 0.12, 0.20
COVERAGE_BAR, ORDER_BAR = 0.90, 0.95
_CLEAR = 0.10
"""Two placements measured too seldom for an interval differ clearly if by so much."""


class Reproduction(Record):
    """A recording, and how well replaying it as it was comes out."""

    case: str
    workload: str
    engine: str
    recorded: str
    """The placement."""
    error: float | None = None
    """Of the rate: reproduced over recorded, less 1."""
    latency_error: float | None = None
    refused: str | None = None


class Pair(Record):
    """One placement of a case: predicted from a recording of another one, and measured."""

    case: str
    workload: str
    engine: str
    clients: int
    recorded: str
    placement: str
    unit: str
    """Of both: ``s`` for the time of laps, ``transactions/s`` of a mix."""
    measured: list[float]
    """By run."""
    predicted: Estimate | None
    speedup: float | None = None
    """Predicted rate over the recorded one, as it is reproduced."""
    refused: str | None = None
    latency_us: dict[str, tuple[float, float]] = {}
    """Percentile, predicted and measured."""

    @property
    def measurement(self) -> Interval:
        """Median of the runs, with its interval."""
        return median_interval(self.measured)

    @property
    def log_error(self) -> float | None:
        """ln(predicted / measured); ``None`` for what was refused."""
        if self.predicted is None:
            return None
        return math.log(self.predicted.value / self.measurement.estimate)

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        return None if self.log_error is None else math.expm1(self.log_error)

    @property
    def covered(self) -> bool | None:
        """Whether the measured median lies in the interval of the prediction."""
        if self.predicted is None:
            return None
        return self.predicted.low <= self.measurement.estimate <= self.predicted.high


class Summary(Record):
    """What some pairs come to; shares and errors from 0 on."""

    pairs: int
    """That were answered."""
    refused: int
    median: float | None = None
    """Of |predicted / measured - 1|, as are the next two."""
    ninetieth: float | None = None
    worst: float | None = None
    bias: float | None = None
    """Median of predicted / measured - 1, with its sign."""
    coverage: float | None = None
    """Share of predictions whose interval holds the measured median."""
    width: float | None = None
    """How far up intervals reach: the median of the upper bound over the prediction, less 1."""
    ordered_pairs: int = 0
    """Of placements of a case that differ significantly."""
    order: float | None = None
    """Share of them that are predicted in the measured order."""

    @property
    def passed(self) -> bool:
        """Whether every bar is kept."""
        if self.median is None or self.ninetieth is None or self.worst is None or self.coverage is None:
            return False
        good = self.median <= MEDIAN_BAR and self.ninetieth <= NINETIETH_BAR and self.worst <= WORST_BAR
        return good and self.coverage >= COVERAGE_BAR and (self.order is None or self.order >= ORDER_BAR)


class Accuracy(Record):
    """What a validation found."""

    day: str
    runs: int
    reproductions: list[Reproduction]
    pairs: list[Pair]
    left_out: dict[str, str] = {}
    """Runs and placements that give nothing to compare, each with the reason."""


def summary(pairs: Sequence[Pair]) -> Summary:
    """Median, 90th percentile and worst of the errors, coverage, and order."""
    answered = [pair for pair in pairs if pair.predicted is not None]
    refused = len(pairs) - len(answered)
    if not answered:
        return Summary(pairs=0, refused=refused)
    errors = np.array([pair.error for pair in answered], dtype=float)
    order = _order(answered)
    return Summary(
        pairs=len(answered),
        refused=refused,
        median=float(np.median(np.abs(errors))),
        ninetieth=float(np.quantile(np.abs(errors), 0.9)),
        worst=float(np.max(np.abs(errors))),
        bias=float(np.median(errors)),
        coverage=sum(bool(pair.covered) for pair in answered) / len(answered),
        width=float(
            np.median([pair.predicted.high / pair.predicted.value - 1 for pair in answered if pair.predicted])
        ),
        ordered_pairs=len(order),
        order=sum(order) / len(order) if order else None,
    )


def repeatability(pairs: Iterable[Pair]) -> tuple[float, float] | None:
    """How much more one run is than another of the same: in the median, and at the 90th percentile.

    A prediction that is nearer than that to a single run is so by chance. ``None`` where each was run once.
    """
    runs = {(pair.case, pair.placement): pair.measured for pair in pairs}
    apart = [max(a, b) / min(a, b) - 1 for measured in runs.values() for a, b in combinations(measured, 2)]
    if not apart:
        return None
    return float(np.median(apart)), float(np.quantile(apart, 0.9))


def by(pairs: Iterable[Pair], key: str) -> dict[str, list[Pair]]:
    """Pairs by a field, in order of first appearance."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(str(getattr(pair, key)), []).append(pair)
    return groups


def _order(pairs: Sequence[Pair]) -> list[bool]:
    """Of placements predicted from one recording that differ: whether they are in the right order."""
    found = []
    for one in by(pairs, "case").values():
        for same in by(one, "recorded").values():
            found += [_same_order(a, b) for a, b in combinations(same, 2) if _differ(a, b)]
    return found


def _differ(a: Pair, b: Pair) -> bool:
    if min(len(a.measured), len(b.measured)) < FEWEST_REPEATS:
        return abs(math.log(a.measurement.estimate / b.measurement.estimate)) > _CLEAR
    return ratio_interval(a.measured, b.measured).verdict in (Verdict.FASTER, Verdict.SLOWER)


def _same_order(a: Pair, b: Pair) -> bool:
    assert a.predicted is not None
    assert b.predicted is not None
    measured = a.measurement.estimate > b.measurement.estimate
    return (a.predicted.value > b.predicted.value) == measured
