"""Hosts as blocking factor: coverage of the intervals, false and true findings, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tierwise.lab.analysis.multi_host_ratios import differing_hosts, multi_host_ratio, two_sided_p_value
from tierwise.model.statistics import student_95

NOISE, TRUTH, DRAWS = 0.05, math.log(3), 2000


def drawn(rng: np.random.Generator, effects: list[float], blocks: list[int]) -> dict[str, list[float]]:
    return {
        f"host{i}": list(TRUTH + effect + NOISE * rng.standard_normal(n))
        for i, (effect, n) in enumerate(zip(effects, blocks, strict=True))
    }


def holds(interval: object, truth: float) -> bool:
    return interval.low < math.exp(truth) < interval.high  # type: ignore[attr-defined]


@pytest.mark.parametrize("distance", [12.706, 2.776, 2.228])
def test_p_values_are_those_of_the_tables(distance: float) -> None:
    freedom = {12.706: 1, 2.776: 4, 2.228: 10}[distance]
    assert two_sided_p_value(distance, freedom) == pytest.approx(0.05, abs=1e-4)
    assert two_sided_p_value(0, freedom) == 1
    assert student_95(freedom) == distance
    assert two_sided_p_value(student_95(41), 41) == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize("blocks", [[2, 2], [3, 2], [5, 5], [6, 2, 4]])
def test_the_interval_for_these_hosts_covers_their_mean(blocks: list[int]) -> None:
    """However much hosts differ: their effects are no noise."""
    rng = np.random.default_rng(1)
    effects = [0.3 * i for i in range(len(blocks))]
    truth = TRUTH + float(np.mean(effects))
    hits = sum(holds(multi_host_ratio(drawn(rng, effects, blocks)).here, truth) for _ in range(DRAWS))
    assert hits / DRAWS == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.2])
def test_the_interval_for_further_hosts_covers_the_mean_of_all_hosts(spread: float) -> None:
    rng = np.random.default_rng(2)
    several = [drawn(rng, list(spread * rng.standard_normal(4)), [3] * 4) for _ in range(DRAWS)]
    ratios = [multi_host_ratio(drawn) for drawn in several]
    hits = sum(holds(ratio.elsewhere, TRUTH) for ratio in ratios)
    assert hits / DRAWS == pytest.approx(0.95, abs=0.015)
    if spread == 0.2:  # where the narrower interval would mislead
        assert sum(holds(ratio.here, TRUTH) for ratio in ratios) / DRAWS < 0.5


@pytest.mark.parametrize("blocks", [[3, 2], [4] * 3, [2] * 10])
def test_equal_hosts_are_rarely_named(blocks: list[int]) -> None:
    rng = np.random.default_rng(3)
    named = sum(bool(differing_hosts(drawn(rng, [0.0] * len(blocks), blocks))) for _ in range(DRAWS))
    assert named / DRAWS <= 0.065


def test_the_host_that_differs_is_named_and_no_other() -> None:
    rng = np.random.default_rng(4)
    differing = [differing_hosts(drawn(rng, [0.0, 0.25, 0.0, 0.0], [4] * 4)) for _ in range(300)]
    assert sum(differing_hosts == ["host1"] for differing_hosts in differing) / 300 > 0.9
    assert set(differing_hosts(drawn(rng, [0.0, 0.5], [3, 3]))) == {"host0", "host1"}


def test_what_few_blocks_leave_open() -> None:
    alone = multi_host_ratio({"a": [math.log(2)]})
    assert (alone.here.estimate, alone.here.low, alone.elsewhere, alone.differing) == (2.0, None, None, [])
    each_once = multi_host_ratio({"a": [0.1], "b": [0.2]})
    assert each_once.here == each_once.elsewhere and each_once.here.low is not None
    exact = multi_host_ratio({"a": [0.1, 0.1], "b": [0.2, 0.2]})
    assert set(exact.differing) == {"a", "b"} and exact.of_hosts["b"] == pytest.approx(math.exp(0.2))
