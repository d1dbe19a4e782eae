"""Goals: how far a first look is from one, and which one comes near."""

from __future__ import annotations

import pytest

from support.fake_replay import FakeReplay, predictor
from tierwise.advise import AdviceOptions, Goal, advise
from tierwise.model.errors import TierwiseError
from tierwise.predict.ranking import RankedPlacement
from tierwise.report.recording.decision_words import goal_text


def look(rate_per_s: float = 1000.0, p99_us: float = 5000.0) -> RankedPlacement:
    return RankedPlacement(placement={}, rate_per_s=rate_per_s, p50_us=800.0, p95_us=3000.0, p99_us=p99_us)


def test_a_latency_is_its_own_distance_and_a_rate_counts_backwards() -> None:
    assert Goal.parse("p50=1ms").distance(look()) == 800
    assert Goal.parse("p95=1ms").distance(look()) == 3000
    assert Goal.parse("p99=1ms").distance(look()) == 5000
    assert Goal.parse("tps=10").distance(look()) == -1000


@pytest.mark.parametrize(
    ("goal", "near"),
    [("p99=5ms", True), ("p99=4.6ms", True), ("p99=4.4ms", False), ("tps=1100", True), ("tps=1200", False)],
)
def test_within_a_tenth_is_near(goal: str, near: bool) -> None:
    assert Goal.parse(goal).near(look()) == near


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("tps=0.4", "0.4 transactions a second"),
        ("tps=1", "1 transaction a second"),
        ("tps=2000", "2\u202f000 transactions a second"),
    ],
)
def test_a_rate_is_said_as_it_was_given(goal: str, words: str) -> None:
    assert goal_text(Goal.parse(goal)) == words


def test_work_done_once_has_no_latency_to_reach() -> None:
    """It was said that every interval lies beyond the goal."""
    with pytest.raises(TierwiseError, match="--goal p99: work that is done once has no latencies"):
        advise(predictor(FakeReplay(once=True)), AdviceOptions(["nvme-dc"], goal=Goal.parse("p99=5ms")))
