"""Medians and ratios of medians with bootstrap intervals.

Method: the percentile bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 13
and 16): draw with replacement from the sample (from each of two independent samples for a ratio), take the
statistic of each draw, and read the interval off its quantiles.

Small samples. A run takes long, so samples are small, and the median of a resample can only be a value of
the sample or the mean of two. The interval of one median is then the whole range of the sample or close to
it, and its true coverage follows from order statistics: for n = 5 it is 1 - 2/2**5 = 94 %. The table gives
the coverage of the nominal 95 % interval, simulated with 2,000 samples each (2,000 resamples) of log-normal
times (deviation 5 %) and of times with an exponential tail, averaged
(``tests/unit/model/test_statistics.py`` checks ratios of the former):

==============  ====  ====  ====  ====  ====  ====  ====  ====
repeats (n)        2     3     4     5     6     7    10    20
==============  ====  ====  ====  ====  ====  ====  ====  ====
one median      50 %  75 %  88 %  93 %  93 %  87 %  94 %  94 %
ratio of two    67 %  90 %  93 %  96 %  96 %  95 %  97 %  97 %
==============  ====  ====  ====  ====  ====  ====  ====  ====

The interval of a ratio decides every comparison. It has its nominal coverage from five repeats on. With fewer
it is too narrow, and :attr:`Interval.weak` is true. Two repeats would find a difference between equals one
time in three, and one repeat has no interval: neither gives a verdict.

Times stopped at a cap. The full time would have been at least as long, so a sample with such a time gives a
lower bound of the median. A ratio with such a sample above (below) the line gives a lower (upper) bound: each
draw is at most (at least) its true value. :attr:`Interval.bound` says so, and a verdict uses the end that
holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tierwise.model.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Statistic = Callable[[Sequence[NDArray[np.float64]]], NDArray[np.float64]]

RESAMPLES = 10_000
LEVEL = 0.95
FEWEST_REPEATS = 3
"""With fewer, an interval of a ratio misses the truth one time in three: no verdict is given."""
ENOUGH_REPEATS = 5
"""With fewer, the true coverage of the interval of a ratio falls below 95 %."""


_STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % points of Student's distribution, by degrees of freedom from 1 on."""


class BoundKind(StrEnum):
    """How an estimate relates to the true value if some times were stopped at a cap."""

    EXACT = "exact"
    AT_LEAST = "at least"
    AT_MOST = "at most"


class RatioVerdict(StrEnum):
    """What an interval of a ratio says about the two sides."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no significant difference"
    UNKNOWN = "unknown"
    """No conclusion: fewer than three repeats on a side, or capped times that leave the answer open."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its bootstrap interval, or a bound and its interval.

    Attributes:
        estimate: the median, or the ratio of medians, in the unit of the sample (a ratio has none).
        low: lower end, or ``None`` when a single repeat leaves no interval.
        high: upper end, or ``None`` likewise.
        n: repeats; for a ratio those of the smaller sample.
        bound: whether the true value is only known to be at least, or at most, the estimate. The low end of a
            lower bound and the high end of an upper bound hold; the other end does not.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    bound: BoundKind = BoundKind.EXACT

    @property
    def weak(self) -> bool:
        """Whether there are too few repeats for the interval to have its nominal coverage."""
        return self.n < ENOUGH_REPEATS

    @property
    def verdict(self) -> RatioVerdict:
        """Reading of a speed-up: above 1 is faster; an interval that contains 1 shows no difference."""
        if self.low is None or self.high is None or self.n < FEWEST_REPEATS:
            return RatioVerdict.UNKNOWN
        if self.low > 1 and self.bound is not BoundKind.AT_MOST:
            return RatioVerdict.FASTER
        if self.high < 1 and self.bound is not BoundKind.AT_LEAST:
            return RatioVerdict.SLOWER
        return RatioVerdict.NO_DIFFERENCE if self.bound is BoundKind.EXACT else RatioVerdict.UNKNOWN

    @property
    def inverse(self) -> Interval:
        """The same ratio the other way round; a lower bound becomes an upper one."""
        turned = {BoundKind.AT_LEAST: BoundKind.AT_MOST, BoundKind.AT_MOST: BoundKind.AT_LEAST}
        low, high = (1 / end if end else None for end in (self.high, self.low))
        return Interval(1 / self.estimate, low, high, self.n, turned.get(self.bound, self.bound))


def median_interval(sample: Sequence[float], *, seed: int = 0, capped: bool = False) -> Interval:
    """Median of one sample, of at least one repeat, with its 95 % percentile bootstrap interval.

    Args:
        capped: whether any repeat was stopped and would have been greater.
        seed: of the resampling; the same seed and sample give the same interval.
    """
    values = _require_sample(sample)
    n = len(values)
    low, high = _ends(_medians(values, np.random.default_rng(seed))) if n > 1 else (None, None)
    return Interval(float(np.median(values)), low, high, n, BoundKind.AT_LEAST if capped else BoundKind.EXACT)


def ratio_interval(
    above: Sequence[float],
    below: Sequence[float],
    *,
    seed: int = 0,
    above_capped: bool = False,
    below_capped: bool = False,
) -> Interval:
    """``median(above) / median(below)`` of independent samples of positive values with its 95 % interval.

    ``seed`` and ``capped`` are as for :func:`median_interval`. Samples that are both capped leave the ratio
    unknown and are refused.
    """
    if above_capped and below_capped:
        raise ValueError("a ratio of two times that were both stopped is not known")
    bound = BoundKind.AT_LEAST if above_capped else BoundKind.AT_MOST if below_capped else BoundKind.EXACT
    samples = [_require_positive(above), _require_positive(below)]
    interval = statistic_interval(samples, lambda medians: medians[0] / medians[1], seed=seed)
    return Interval(interval.estimate, interval.low, interval.high, interval.n, bound)


def statistic_interval(
    samples: Sequence[Sequence[float] | NDArray[np.float64]], statistic: Statistic, *, seed: int = 0
) -> Interval:
    """Any function of the medians of independent samples with its 95 % interval.

    ``statistic`` takes the medians, one array for each sample, and works element by element.
    """
    arrays = [_require_sample(sample) for sample in samples]
    rng = np.random.default_rng(seed)
    estimate = statistic([np.median(values, keepdims=True) for values in arrays])
    n = min(map(len, arrays))
    low, high = _ends(statistic([_medians(values, rng) for values in arrays])) if n > 1 else (None, None)
    return Interval(float(estimate[0]), low, high, n)


def coefficient_of_variation(sample: Sequence[float]) -> float | None:
    """Standard deviation (n - 1) over the mean; ``None`` for a single value or a mean of zero."""
    values = _require_sample(sample)
    mean = float(values.mean())
    return float(values.std(ddof=1)) / mean if len(values) > 1 and mean else None


def median_absolute_deviation(sample: Sequence[float]) -> float:
    """Median of the distances from the median, in the unit of the sample, unscaled."""
    values = _require_sample(sample)
    return float(np.median(np.abs(values - np.median(values))))


def _medians(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    draws = rng.integers(0, len(values), size=(RESAMPLES, len(values)))
    medians: NDArray[np.float64] = np.median(values[draws], axis=1)
    return medians


def _ends(statistics: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(statistics, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _require_sample(sample: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.asarray(sample, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        raise ValueError("a sample needs at least one value, all of them finite")
    return values


def _require_positive(sample: Sequence[float]) -> NDArray[np.float64]:
    values = _require_sample(sample)
    if (values <= 0).any():
        raise ValueError("a ratio needs positive values")
    return values


def mean_half_width(sample: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean (Student), in the unit of the sample; 0 for one value.

    For many cheap values, such as logarithms of ratios over bursts or seeds; use medians for runs. Every
    prediction has one, so it needs no extra.
    """
    n = len(sample)
    if n < 2:
        return 0.0
    mean = math.fsum(sample) / n
    variance = math.fsum((value - mean) ** 2 for value in sample) / (n - 1)
    return student_95(n - 1) * math.sqrt(variance / n)


def student_95(freedom: int) -> float:
    """97.5 % point of Student's distribution with at least one degree of freedom, accurate to 0.1 %."""
    if freedom <= len(_STUDENT_95):
        return _STUDENT_95[freedom - 1]
    return 1.960 + 2.372 / freedom + 2.82 / freedom**2  # the first terms of its expansion in 1 / freedom


CONFIDENCE = 0.95
_STEPS = 60


def highest_plausible_share(events: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The greatest share of events that ``events`` of ``trials`` do not contradict, with 95 % confidence.

    ``confidence`` is another one. One-sided and exact: Clopper and Pearson, "The use of confidence or
    fiducial limits illustrated in the case of the binomial", Biometrika 26 (1934). For no event it is
    ``1 - 0.05 ** (1 / trials)``, about ``3 / trials`` (the rule of three).

    Raises:
        ValueError: for counts that cannot be.
    """
    if not 0 <= events <= trials or trials == 0:
        raise ValueError(f"{events} of {trials}")
    if events == trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        if _at_most(events, trials, share) > 1 - confidence:
            low = share
        else:
            high = share
    return high


def share_interval(events: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share, two-sided and exact (Clopper and Pearson).

    Raises:
        ValueError: for counts that cannot be.
    """
    each = (1 + CONFIDENCE) / 2
    return 1 - highest_plausible_share(trials - events, trials, each), highest_plausible_share(
        events, trials, each
    )


def _at_most(events: int, trials: int, share: float) -> float:
    """Probability of at most so many events."""
    return sum(math.comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(events + 1))
