"""The estimate of wait profiles and its error, on states whose true shares are known."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.engine_contract import until
from tierwise.results import WaitClass, WaitProfile
from tierwise.results.wait_sampling import CLASSES, WaitSampler, profile_of

ON = CLASSES.index("log_sync")
OFF = CLASSES.index("client")


def table(on: NDArray[np.int64], off: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.zeros((len(on), len(CLASSES)), dtype=np.int64)
    counts[:, ON], counts[:, OFF] = on, off
    return counts


def markov_chain(
    generator: np.random.Generator, ticks: int, stay: float, share: float, sessions: int
) -> NDArray[np.int64]:
    """Sessions that are on for ``share`` of the time and keep their state with probability ``stay``.

    Half of them move as one, as behind a group commit.
    """
    redraw = generator.random((ticks, sessions)) >= stay
    redraw[0] = True
    drawn = generator.random((ticks, sessions)) < share
    together = sessions // 2
    redraw[:, :together], drawn[:, :together] = redraw[:, :1], drawn[:, :1]
    last_draw = np.maximum.accumulate(np.where(redraw, np.arange(ticks)[:, None], 0), axis=0)
    on = np.take_along_axis(drawn, last_draw, axis=0).sum(axis=1)
    return table(on, sessions - on)


@given(
    st.lists(
        st.lists(st.integers(0, 50), min_size=len(CLASSES), max_size=len(CLASSES)), min_size=1, max_size=200
    )
)
def test_shares_add_up_to_one(rows: list[list[int]]) -> None:
    counts = np.array(rows, dtype=np.int64)
    profile = profile_of(counts, rate_hz=100)
    if counts.sum() == 0:
        assert profile is None
        return
    assert profile is not None
    assert sum(part.share for part in profile.shares.values()) == pytest.approx(1)
    assert profile.ticks == len(rows)
    assert profile.samples == counts.sum()
    for part in profile.shares.values():
        assert 0 <= part.share <= 1
        assert 3 / len(rows) <= part.sampling_error <= 1 or part.sampling_error == 1


@pytest.mark.parametrize(("stay", "sessions"), [(0.0, 1), (0.0, 10), (0.8, 10), (0.95, 4), (0.95, 10)])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_interval_holds_the_true_share_19_times_in_20(stay: float, sessions: int, share: float) -> None:
    """Sessions move together, and states last up to 20 ticks; treated as independent they would fail this."""
    generator = np.random.default_rng(20261)
    trials = 400
    held = 0
    for _ in range(trials):
        profile = profile_of(markov_chain(generator, 6000, stay, share, sessions), rate_hz=100)
        assert profile is not None
        part = profile.shares["log_sync"]
        held += abs(part.share - share) <= part.sampling_error
    assert 0.92 <= held / trials <= 0.98


def test_a_binomial_interval_would_be_too_short() -> None:
    """Keeps the test above honest: the usual formula fails on the same states."""
    generator = np.random.default_rng(20262)
    held = 0
    for _ in range(200):
        counts = markov_chain(generator, 2000, stay=0.95, share=0.5, sessions=10)
        estimate = counts[:, ON].sum() / counts.sum()
        held += abs(estimate - 0.5) <= 1.96 * np.sqrt(estimate * (1 - estimate) / counts.sum())
    assert held / 200 < 0.5


def test_the_error_shrinks_with_the_root_of_the_ticks() -> None:
    generator = np.random.default_rng(7)
    errors = []
    for ticks in (1000, 4000, 16000):
        profiles = [profile_of(markov_chain(generator, ticks, 0.8, 0.4, 8), 100) for _ in range(40)]
        errors.append(np.mean([profile.shares["log_sync"].sampling_error for profile in profiles if profile]))
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.2)


def test_what_was_never_seen_may_still_be() -> None:
    ones = np.ones(600, dtype=np.int64)
    profile = profile_of(table(ones, 0 * ones), rate_hz=100)
    assert profile is not None
    assert profile.shares["lock"].share == 0
    assert profile.shares["lock"].sampling_error == pytest.approx(3 / 600)


def test_too_few_ticks_tell_nothing() -> None:
    profile = profile_of(table(np.array([1, 0, 1]), np.array([0, 1, 0])), rate_hz=100)
    assert profile is not None
    assert all(part.sampling_error == 1 for part in profile.shares.values())


class VirtualTime:
    """Time that passes only where the probe waits; it takes the place of the sampler's module ``time``."""

    thread_time = staticmethod(time.thread_time)

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    made = VirtualTime()
    monkeypatch.setattr("tierwise.results.wait_sampling.time", made)
    return made


class TurningDisk:
    """A probe of one session that waits for its disk during the first half of each period."""

    def __init__(
        self, clock: VirtualTime, period_s: float, fails_after: int | None = None, slow_s: float = 0.0
    ) -> None:
        self.clock = clock
        self.period_s = period_s
        self.fails_after = fails_after
        self.slow_s = slow_s
        self.looks: list[float] = []
        self.threads: set[int] = set()
        self.closed = False

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        if self.fails_after is not None and len(self.looks) >= self.fails_after:
            raise ConnectionError("gone")
        self.clock.now_s += delay_s + self.slow_s
        self.looks.append(self.clock.now_s)
        self.threads.add(threading.get_ident())
        turned = self.looks[-1] / self.period_s % 1
        return ["log_sync" if turned < 0.5 else "client"]

    def cpu_s(self) -> float:
        return len(self.looks) * 0.001

    def close(self) -> None:
        self.closed = True


def sampled(probe: TurningDisk, seconds: float) -> tuple[WaitProfile, WaitSampler]:
    """A profile of that many seconds at least."""
    sampler = WaitSampler(probe, rate_hz=100)
    sampler.start()
    until(lambda: probe.clock.now_s > seconds)
    profile = sampler.stop()
    assert profile is not None
    return profile, sampler


def test_the_sampler_keeps_its_rate_and_closes_its_probe(clock: VirtualTime) -> None:
    probe = TurningDisk(clock, 0.0123)
    profile, sampler = sampled(probe, 10)
    assert probe.closed
    assert profile.rate_hz == pytest.approx(100, rel=0.01)
    assert profile.ticks == len(probe.looks)
    assert sampler.engine_cpu_s == pytest.approx(profile.ticks * 0.001)
    assert probe.threads.isdisjoint({threading.get_ident()})


def test_a_disk_that_turns_in_step_with_the_rate_is_seen_from_all_sides(clock: VirtualTime) -> None:
    """At an exact 100 Hz this disk would be seen at one angle, and its share as 0 or 1."""
    profile, _ = sampled(TurningDisk(clock, 0.010), 20)
    assert profile.shares["log_sync"].share == pytest.approx(0.5, abs=0.05)


def test_ticks_that_were_missed_are_not_made_up_for(clock: VirtualTime) -> None:
    probe = TurningDisk(clock, 0.01, slow_s=0.03)
    profile, _ = sampled(probe, 5)
    assert profile.rate_hz < 40
    assert min(b - a for a, b in zip(probe.looks, probe.looks[1:], strict=False)) > 0.029


def test_a_probe_that_fails_ends_the_sampling(clock: VirtualTime) -> None:
    probe = TurningDisk(clock, 0.01, fails_after=5)
    sampler = WaitSampler(probe, rate_hz=1000)
    sampler.start()
    until(lambda: sampler.failure is not None)
    assert sampler.stop() is None
    assert isinstance(sampler.failure, ConnectionError)
    assert probe.closed


def test_a_sampler_that_was_never_started_gives_nothing(clock: VirtualTime) -> None:
    probe = TurningDisk(clock, 0.01)
    assert WaitSampler(probe).stop() is None
    assert probe.closed
