"""Prediction error: pairs of predicted and measured rates, and their summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import fmean
from typing import Literal

from tierwise.lab.validation.measured_rates import BlockEstimate
from tierwise.lab.validation.slot_rows import RecordingKey, RecordingVerdict, Round
from tierwise.model.extras import np
from tierwise.model.names import group_by_key
from tierwise.predict import Estimate
from tierwise.predict.answer import MOST_SPAN
from tierwise.results.measurements import StrictModel

CONTROL_BAR, MEDIAN_BAR, NINETIETH_BAR, WORST_BAR = 0.03, 0.06, 0.15, 0.35
COVERAGE_BAR, WIDTH_BAR, ORDER_BAR, REGRET_BAR, REGRET_SHARE_BAR = 0.90, 0.25, 0.90, 0.05, 0.95
LEAST_APART, MOST_APART = 1.1, 2.0
"""Placements are compared in order where their measured rates differ by a factor between these."""
GOOD, WRONG = 0.15, 0.25
"""Errors below which a prediction is good, and above which it is wrong."""
Verdict = Literal["a figure", "a range", "no answer", "not usable"]
"""What is stated: a rate with its interval; the interval alone; nothing; that the recording is not usable."""


class JudgedRecording(RecordingVerdict):
    """A recording, how well its replay reproduces it, and the verdict on it."""

    beside_per_s: float | None = None
    """Of the slots before and after, without recording."""


class LatencyPercentile(StrictModel):
    """A percentile of latency, in µs."""

    predicted: Estimate
    measured: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.predicted.low <= self.measured <= self.predicted.high


class PredictionPair(StrictModel):
    """One placement of a case: predicted from one recording, and measured."""

    case: str
    family: str
    load: str
    """Kind of load, such as ``think time``."""
    engine: str
    clients: int
    recorded: str
    placement: str
    path: str
    """Kinds of the recorded and the predicted storage, as ``real→emulated``."""
    from_disk: bool = False
    """Whether it was recorded on a disk that turns."""
    block: int
    round: Round
    model: str
    """Commit of the model that predicted."""
    laps: bool
    measured: BlockEstimate
    """Rate, of transactions or jobs: the measured ratio times the rate beside the recording."""
    ratio: BlockEstimate
    """Measured rate over that of the recorded placement, within blocks; 1 for that placement itself."""
    predicted: Estimate | None
    speedup: float | None = None
    """Predicted rate over the one beside the recording."""
    gained: float | None = None
    """Share of the sessions' time on processors beyond that of the recorded run; ``None`` if not kept."""
    bound_per_s: float | None = None
    """Stated upper bound of the rate."""
    refused: str | None = None
    latency: dict[str, LatencyPercentile] = {}
    """Latency by percentile: ``p50``, ``p95``, ``p99``."""
    price: float | None = None
    """Price of the placement a month; nothing for what is there already."""

    @property
    def control(self) -> bool:
        """Whether the recorded placement itself is predicted."""
        return self.recorded == self.placement

    @property
    def key(self) -> RecordingKey:
        """Key of the recording."""
        return self.case, self.recorded, self.block, self.round

    @property
    def log_error(self) -> float | None:
        """ln(predicted / measured); ``None`` if the prediction was refused."""
        return None if self.predicted is None else math.log(self.predicted.value / self.measured.value)

    @property
    def error(self) -> float | None:
        """Predicted over measured rate, less 1: above 0 is too fast."""
        return None if self.log_error is None else math.expm1(self.log_error)

    @property
    def covered(self) -> bool | None:
        """Whether the measured rate lies in the interval of the prediction."""
        predicted = self.predicted
        return None if predicted is None else predicted.low <= self.measured.value <= predicted.high

    @property
    def within_bound(self) -> bool | None:
        """Whether the measured rate keeps below the stated bound; its interval may reach beyond."""
        return None if self.bound_per_s is None else self.measured.low <= self.bound_per_s


class ErrorSummary(StrictModel):
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
    """Median error, with its sign."""
    coverage: float | None = None
    """Share of predictions whose interval holds the measurement."""
    width: float | None = None
    """Reach of intervals: the median of the upper end over the prediction, less 1."""
    score: float | None = None
    """Mean interval score."""
    bounds: int = 0
    exceeded: int = 0
    """Number of bounds, and of those that the measurement exceeds."""
    ordered_pairs: int = 0
    """Number of pairs of placements of a case that differ by 1.1 to 2 times."""
    order: float | None = None
    """Share of these pairs that are predicted in the measured order."""


class PredictionAccuracy(StrictModel):
    """What a validation found."""

    day: str
    slots: int
    """Number of slots."""
    recordings: list[JudgedRecording]
    """Each recording with the verdict on it."""
    pairs: list[PredictionPair]
    rates: dict[Round, dict[str, dict[str, BlockEstimate]]] = {}
    """Round -> case -> placement -> measured rate."""
    agreement: tuple[int, int] | None = None
    """Of the ratios that two rounds measured: how many agree within their intervals, and of how many."""
    left_out: dict[str, str] = {}
    """Cases and placements that give nothing to compare, each with the reason."""
    idle_poll_ns: list[int] = []
    """Times that idle cores of a guest poll before they halt."""

    @property
    def predictions(self) -> list[PredictionPair]:
        """Pairs that predict a placement other than the recorded one."""
        return [pair for pair in self.pairs if not pair.control]

    @property
    def controls(self) -> list[PredictionPair]:
        """Pairs that predict the recorded placement itself."""
        return [pair for pair in self.pairs if pair.control]

    @property
    def passed(self) -> bool:
        """Whether the bars for errors, intervals, order and regret are met."""
        return all(bar.met for bar in accuracy_targets(self.pairs))


class AccuracyTarget(StrictModel):
    """A target of the validation, and what was measured; shares from 0 on."""

    name: str
    value: float | None
    """Measured; ``None`` without any measurement, which does not meet the bar."""
    most: float | None = None
    least: float | None = None
    count: int | None = None
    """Of how many the value is a share."""

    @property
    def met(self) -> bool:
        """Whether the value is within the target."""
        if self.value is None:
            return False
        return self.value <= self.most if self.most is not None else self.value >= (self.least or 0.0)


def accuracy_targets(pairs: Sequence[PredictionPair]) -> list[AccuracyTarget]:
    """Every target with what these pairs, controls among them, come to."""
    controls = [pair for pair in pairs if pair.control]
    total = summarise_pairs([pair for pair in pairs if not pair.control], controls)
    exceeded = total.exceeded / total.bounds if total.bounds else 0.0
    return [
        AccuracyTarget(
            name="error of the recorded placement, median",
            value=summarise_pairs(controls).median,
            most=CONTROL_BAR,
        ),
        AccuracyTarget(name="error of other placements, median", value=total.median, most=MEDIAN_BAR),
        AccuracyTarget(name="the same at the 90th percentile", value=total.ninetieth, most=NINETIETH_BAR),
        AccuracyTarget(name="the same at worst", value=total.worst, most=WORST_BAR),
        AccuracyTarget(
            name="intervals that hold", value=total.coverage, least=COVERAGE_BAR, count=total.pairs
        ),
        AccuracyTarget(name="reach of intervals, median", value=total.width, most=WIDTH_BAR),
        AccuracyTarget(
            name="pairs of placements in order",
            value=1.0 if total.order is None else total.order,
            least=ORDER_BAR,
            count=total.ordered_pairs,
        ),
        AccuracyTarget(name="bounds exceeded", value=exceeded, most=0.0, count=total.bounds),
        AccuracyTarget(
            name=f"decisions with a regret within {100 * REGRET_BAR:.0f} %",
            value=small_regret_share(pairs),
            least=REGRET_SHARE_BAR,
            count=len(decision_regrets(pairs)),
        ),
    ]


def summarise_pairs(
    pairs: Sequence[PredictionPair], ordered_with: Sequence[PredictionPair] = ()
) -> ErrorSummary:
    """Median, 90th percentile and worst of the errors, coverage, bounds and order.

    ``ordered_with`` are more placements from the same recordings, which count only for the order.
    """
    answered = [(pair, pair.predicted) for pair in pairs if pair.predicted is not None]
    refused = len(pairs) - len(answered)
    if not answered:
        return ErrorSummary(pairs=0, refused=refused)
    errors = np.array([pair.error or 0.0 for pair, _ in answered])
    order = _order([*pairs, *ordered_with])
    bounds = [pair.within_bound for pair, _ in answered if pair.within_bound is not None]
    return ErrorSummary(
        pairs=len(answered),
        refused=refused,
        cases=len({pair.case for pair, _ in answered}),
        median=float(np.median(np.abs(errors))),
        ninetieth=float(np.quantile(np.abs(errors), 0.9)),
        worst=float(np.max(np.abs(errors))),
        bias=float(np.median(errors)),
        coverage=fmean(bool(pair.covered) for pair, _ in answered),
        width=float(np.median([estimate.high / estimate.value - 1 for _, estimate in answered])),
        score=fmean(interval_score(estimate, pair.measured.value) for pair, estimate in answered),
        bounds=len(bounds),
        exceeded=bounds.count(False),
        ordered_pairs=len(order),
        order=fmean(order) if order else None,
    )


def decision_regrets(pairs: Sequence[PredictionPair]) -> list[float]:
    """Of each recording and price: the best measured rate for that money over that of the advised placement.

    Advised is the placement with the highest predicted rate among those that cost no more. The share by which
    another one is faster is the regret; 0 if the advised one is the best. Placements without a price, such as
    the machine's own storage when another was recorded, are left out.
    """
    shares: list[float] = []
    for same in group_by_key((pair.key, pair) for pair in pairs).values():
        priced = [
            (pair.price, pair) for pair in same if pair.price is not None and pair.predicted is not None
        ]
        for money in sorted({price for price, _ in priced}):
            within = [pair for price, pair in priced if price <= money]
            if len(within) > 1:
                advised = max(within, key=lambda pair: pair.predicted.value if pair.predicted else 0.0)
                best = max(pair.measured.value for pair in within)
                shares.append(best / advised.measured.value - 1)
    return shares


def small_regret_share(pairs: Sequence[PredictionPair]) -> float | None:
    """Share of the decisions whose regret is within the bar; ``None`` without any."""
    shares = decision_regrets(pairs)
    return fmean(share <= REGRET_BAR for share in shares) if shares else None


def group_pairs_by(pairs: Iterable[PredictionPair], key: str) -> dict[str, list[PredictionPair]]:
    """Pairs by a field, in order of first appearance."""
    return group_by_key((str(getattr(pair, key)), pair) for pair in pairs)


def count_verdicts(
    recordings: Sequence[JudgedRecording], pairs: Sequence[PredictionPair]
) -> dict[tuple[Verdict, str], int]:
    """Number of predictions of other placements by what is stated of them, and by their error.

    ``good``: below 15 %. ``wrong``: above 25 %, or none was given. ``between``: neither.
    """
    usable = {recording.key for recording in recordings if recording.usable}
    counted = dict[tuple[Verdict, str], int]()
    for pair in pairs:
        if not pair.control:
            error = math.inf if pair.error is None else abs(pair.error)
            what = "good" if error < GOOD else "wrong" if error > WRONG else "between"
            stated: Verdict = "no answer"
            if predicted := pair.predicted:
                stated = "a range" if predicted.high > MOST_SPAN * predicted.low else "a figure"
            key = stated if pair.key in usable else "not usable", what
            counted[key] = counted.get(key, 0) + 1
    return counted


def _order(pairs: Sequence[PredictionPair]) -> list[bool]:
    """Whether each pair of differing placements predicted from one recording is in the right order."""
    answered = group_by_key((pair.key, (pair.predicted, pair.measured)) for pair in pairs if pair.predicted)
    return [
        (a.value > b.value) == (measured_a.value > measured_b.value)
        for same in answered.values()
        for (a, measured_a), (b, measured_b) in combinations(same, 2)
        if LEAST_APART <= math.exp(abs(math.log(measured_a.value / measured_b.value))) <= MOST_APART
    ]


_LEVEL = 0.95


def interval_score(predicted: Estimate, measured: float) -> float:
    """Width of the 95 % interval plus 40 times the distance of a measurement outside it; lower is better.

    It rewards narrow and correct intervals. Of logarithms, so it reads as a share. Gneiting and Raftery,
    "Strictly Proper Scoring Rules, Prediction, and Estimation", Journal of the American Statistical
    Association 102(477), 2007: section 6.2.
    """
    low, high, value = (math.log(end) for end in (predicted.low, predicted.high, measured))
    outside = max(low - value, 0.0) + max(value - high, 0.0)
    return high - low + 2 / (1 - _LEVEL) * outside
