"""Prediction error: pairs of predicted and measured figures, and their summary."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from tierwise.model.extras import np
from tierwise.model.statistics import Interval, median_interval
from tierwise.predict import Estimate
from tierwise.results.measurements import Record
from tierwise.validation.rows import Round
from tierwise.validation.scores import crps, interval_score
from tierwise.validation.truth import Spread

MEDIAN_BAR, NINETIETH_BAR, WORST_BAR = 0.05, 0.12, 0.30
COVERAGE_BAR, WIDTH_BAR, ORDER_BAR, ANSWERED_BAR = 0.90, 0.20, 0.90, 0.95
LEAST_APART, MOST_APART = 1.1, 2.0
"""Placements are compared in order where their measured figures differ by a factor between these."""


class Reproduction(Record):
    """A recording, and how well replaying it as it was comes out."""

    case: str
    engine: str
    recorded: str
    """The placement."""
    block: int
    round: Round
    error: float | None = None
    """Relative error of the rate: reproduced over recorded, less 1."""
    latency_error: float | None = None
    problem: str | None = None
    """Why the recording cannot be opened or gives no answer."""


class Figure(Record):
    """A percentile of latency, in µs."""

    predicted: Estimate
    measured: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.predicted.low <= self.measured <= self.predicted.high


class Pair(Record):
    """One placement of a case: predicted from one recording, and measured."""

    case: str
    family: str
    engine: str
    clients: int
    recorded: str
    placement: str
    path: str
    """Kinds of the recorded and the predicted storage, as ``real→emulated``."""
    block: int
    round: Round
    model: str
    """Commit of the model that predicted."""
    unit: str
    """Unit of prediction and measurement: ``s`` for the time of laps, ``transactions/s`` of a mix."""
    measured: list[float]
    """One figure per run."""
    predicted: Estimate | None
    speedup: float | None = None
    """Predicted rate over the recorded one."""
    refused: str | None = None
    latency: dict[str, Figure] = {}
    """Latency by percentile: ``p50``, ``p95``, ``p99``."""
    parts: dict[str, tuple[float, float]] = {}
    """Components of the prediction by name: predicted and measured."""

    @property
    def control(self) -> bool:
        """Whether the recorded placement itself is predicted."""
        return self.recorded == self.placement

    @property
    def measurement(self) -> Interval:
        """Median of the runs, with its interval."""
        return median_interval(self.measured)

    @property
    def log_error(self) -> float | None:
        """ln(predicted / measured); ``None`` if the prediction was refused."""
        if self.predicted is None:
            return None
        return math.log(self.predicted.value / self.measurement.estimate)

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        return None if self.log_error is None else math.expm1(self.log_error)

    @property
    def rate_error(self) -> float | None:
        """Relative error of the rate, also where times were measured: above 0 is too fast."""
        if self.log_error is None:
            return None
        return math.expm1(-self.log_error if self.unit == "s" else self.log_error)

    @property
    def covered(self) -> bool | None:
        """Whether the measured median lies in the interval of the prediction."""
        if self.predicted is None:
            return None
        return self.predicted.low <= self.measurement.estimate <= self.predicted.high


class Summary(Record):
    """What some pairs come to; shares and errors from 0 on."""

    pairs: int
    """Number of answered pairs."""
    refused: int
    cases: int = 0
    median: float | None = None
    """Median of |predicted / measured - 1|; the next two are of the same error."""
    ninetieth: float | None = None
    worst: float | None = None
    bias: float | None = None
    """Median error of the rate, with its sign."""
    coverage: float | None = None
    """Share of predictions whose interval holds the measured median."""
    width: float | None = None
    """Upper half-width of intervals: the median of the upper bound over the prediction, less 1."""
    score: float | None = None
    """Mean interval score."""
    crps: float | None = None
    ordered_pairs: int = 0
    """Number of pairs of placements of a case that differ by 1.1 to 2 times."""
    order: float | None = None
    """Share of these pairs that are predicted in the measured order."""

    @property
    def passed(self) -> bool:
        """Whether every bar is met."""
        figures = (self.median, self.ninetieth, self.worst, self.width)
        bars = (MEDIAN_BAR, NINETIETH_BAR, WORST_BAR, WIDTH_BAR)
        if any(figure is None or figure > bar for figure, bar in zip(figures, bars, strict=True)):
            return False
        answered = self.pairs >= ANSWERED_BAR * (self.pairs + self.refused)
        covered = self.coverage is not None and self.coverage >= COVERAGE_BAR
        return answered and covered and (self.order is None or self.order >= ORDER_BAR)


class Accuracy(Record):
    """What a validation found."""

    day: str
    runs: int
    reproductions: list[Reproduction]
    pairs: list[Pair]
    spreads: dict[Round, dict[str, Spread]] = {}
    """Spreads by round: of ``raw`` figures and of those ``adjusted`` by the control workload."""
    left_out: dict[str, str] = {}
    """Cases, runs and placements that give nothing to compare, each with the reason."""
    idle_poll_ns: list[int] = []
    """Times that idle cores of a guest poll before they halt."""
    too_short: list[str] = []
    """Cases with laps shorter than the declared minimum."""

    @property
    def predictions(self) -> list[Pair]:
        """Pairs that predict a placement other than the recorded one."""
        return [pair for pair in self.pairs if not pair.control]

    @property
    def controls(self) -> list[Pair]:
        """Pairs that predict the recorded placement itself."""
        return [pair for pair in self.pairs if pair.control]


def summary(pairs: Sequence[Pair], ordered_with: Sequence[Pair] = ()) -> Summary:
    """Median, 90th percentile and worst of the errors, coverage, scores, and order.

    Args:
        pairs: to sum up.
        ordered_with: more placements from the same recordings, which count only for the order.
    """
    answered = [(pair, pair.predicted) for pair in pairs if pair.predicted is not None]
    refused = len(pairs) - len(answered)
    if not answered:
        return Summary(pairs=0, refused=refused)
    errors = np.abs([pair.error or 0.0 for pair, _ in answered])
    order = _order([*pairs, *ordered_with])
    scored = [(predicted, pair.measurement.estimate) for pair, predicted in answered]
    return Summary(
        pairs=len(answered),
        refused=refused,
        cases=len({pair.case for pair, _ in answered}),
        median=float(np.median(errors)),
        ninetieth=float(np.quantile(errors, 0.9)),
        worst=float(np.max(errors)),
        bias=float(np.median([pair.rate_error or 0.0 for pair, _ in answered])),
        coverage=sum(bool(pair.covered) for pair, _ in answered) / len(answered),
        width=float(np.median([one.high / one.value - 1 for _, one in answered])),
        score=float(np.mean([interval_score(*one) for one in scored])),
        crps=float(np.mean([crps(*one) for one in scored])),
        ordered_pairs=len(order),
        order=sum(order) / len(order) if order else None,
    )


def by(pairs: Iterable[Pair], key: str) -> dict[str, list[Pair]]:
    """Pairs by a field, in order of first appearance."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(str(getattr(pair, key)), []).append(pair)
    return groups


def _order(pairs: Sequence[Pair]) -> list[bool]:
    """Whether each pair of differing placements predicted from one recording is in the right order."""
    recordings: dict[tuple[str, str, int, str], list[Pair]] = {}
    for pair in pairs:
        if pair.predicted is not None:
            recordings.setdefault((pair.case, pair.recorded, pair.block, pair.round), []).append(pair)
    return [
        _same_order(a, b) for same in recordings.values() for a, b in combinations(same, 2) if _differ(a, b)
    ]


def _differ(a: Pair, b: Pair) -> bool:
    apart = math.exp(abs(math.log(a.measurement.estimate / b.measurement.estimate)))
    return LEAST_APART <= apart <= MOST_APART


def _same_order(a: Pair, b: Pair) -> bool:
    assert a.predicted is not None
    assert b.predicted is not None
    measured = a.measurement.estimate > b.measurement.estimate
    return (a.predicted.value > b.predicted.value) == measured
