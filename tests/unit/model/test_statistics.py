"""Intervals: their algebra, their small-sample coverage, and what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierwise.model import statistics
from tierwise.model.statistics import Interval, RatioVerdict, median_interval, ratio_interval

positive = st.floats(0.01, 1e6)
samples = st.lists(positive, min_size=2, max_size=30)


@settings(max_examples=60)
@given(samples)
def test_interval_stays_within_the_sample_and_around_the_median(sample: list[float]) -> None:
    interval = median_interval(sample)
    assert interval.low is not None and interval.high is not None
    assert interval.estimate == pytest.approx(float(np.median(sample)))
    assert min(sample) <= interval.low <= interval.high <= max(sample)
    assert interval.n == len(sample)


@settings(max_examples=40)
@given(samples, samples, st.floats(0.01, 100))
def test_ratio_follows_the_unit_of_the_numerator(above: list[float], below: list[float], unit: float) -> None:
    plain, scaled = ratio_interval(above, below), ratio_interval([unit * x for x in above], below)
    assert plain.low is not None and scaled.low is not None
    assert scaled.estimate == pytest.approx(unit * plain.estimate)
    assert scaled.low == pytest.approx(unit * plain.low)


@settings(max_examples=40)
@given(samples, st.integers(0, 2**32))
def test_same_seed_same_interval(sample: list[float], seed: int) -> None:
    assert median_interval(sample, seed=seed) == median_interval(sample, seed=seed)


def test_seed_is_used() -> None:
    sample = list(np.random.default_rng(3).lognormal(size=40))
    assert ratio_interval(sample, sample, seed=1) != ratio_interval(sample, sample, seed=2)


def test_one_repeat_has_no_interval() -> None:
    assert median_interval([3.0]) == Interval(3.0, None, None, 1)
    ratio = ratio_interval([3.0], [1.0, 1.1, 1.2])
    assert (ratio.low, ratio.high, ratio.verdict) == (None, None, RatioVerdict.UNKNOWN)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.01, 2.0, RatioVerdict.FASTER),
        (0.5, 0.99, RatioVerdict.SLOWER),
        (0.9, 1.1, RatioVerdict.NO_DIFFERENCE),
        (1.0, 1.2, RatioVerdict.NO_DIFFERENCE),
    ],
)
def test_verdict(low: float, high: float, verdict: RatioVerdict) -> None:
    assert Interval(1.0, low, high, 5).verdict is verdict


def test_fewer_than_five_repeats_are_weak() -> None:
    assert ratio_interval([1.0] * 4, [1.0] * 9).weak
    assert not ratio_interval([1.0] * 5, [1.0] * 9).weak


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [1.0, math.inf]])
def test_refuses_what_is_no_sample(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value"):
        median_interval(bad)


def test_refuses_times_that_are_not_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([1.0, 2.0], [0.0, 1.0])


def test_spread_measures() -> None:
    assert statistics.coefficient_of_variation([9.0, 10.0, 11.0]) == pytest.approx(0.1)
    assert statistics.coefficient_of_variation([9.0]) is None
    assert statistics.median_absolute_deviation([1.0, 2.0, 4.0, 100.0]) == pytest.approx(1.5)


# Simulated share of ratio intervals that hold the true ratio 1. The bounds are four standard errors of 500
# trials away from the table in the module's docstring.
@pytest.mark.parametrize(
    ("n", "least", "most"), [(2, 0.58, 0.77), (3, 0.83, 0.95), (5, 0.93, 1.0), (10, 0.93, 1.0)]
)
def test_coverage_of_the_ratio(monkeypatch: pytest.MonkeyPatch, n: int, least: float, most: float) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1_000)
    rng = np.random.default_rng(20)
    times = np.exp(0.05 * rng.standard_normal((500, 2, n)))
    ratio_intervals = [ratio_interval(list(a), list(b), seed=i) for i, (a, b) in enumerate(times)]
    covered = sum(interval.low <= 1 <= interval.high for interval in ratio_intervals) / len(ratio_intervals)  # type: ignore[operator]
    assert least <= covered <= most


def test_two_repeats_prove_nothing() -> None:
    interval = ratio_interval([9.0, 9.1], [1.0, 1.1])
    assert interval.low is not None and interval.low > 8
    assert interval.verdict is RatioVerdict.UNKNOWN


def test_detects_a_difference_that_is_there() -> None:
    rng = np.random.default_rng(4)
    times = np.exp(0.05 * rng.standard_normal((200, 2, 5)))
    ratio_intervals = [ratio_interval(list(1.3 * a), list(b)) for a, b in times]
    assert sum(interval.verdict is RatioVerdict.FASTER for interval in ratio_intervals) >= 198


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (4, 2.776), (10, 2.228), (11, 2.201), (30, 2.042)]
)
def test_the_interval_of_a_mean_is_students(freedom: int, quantile: float) -> None:
    sample = [float(value) for value in range(freedom + 1)]
    expected = quantile * float(np.std(sample, ddof=1)) / math.sqrt(len(sample))
    assert statistics.mean_half_width(sample) == pytest.approx(expected, rel=2e-3)


def test_the_mean_of_one_has_no_width() -> None:
    assert statistics.mean_half_width([3.0]) == 0.0
