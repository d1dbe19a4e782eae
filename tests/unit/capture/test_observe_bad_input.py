"""An observation that fails leaves nothing behind, and a short one says what it cannot know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tierwise.capture import observe
from tierwise.capture.sql_session import CounterReading, Dsn, SessionSample, SessionState
from tierwise.model.errors import TierwiseError


class Server:
    """A server that answers until its catalogue is read."""

    error: BaseException
    asked = 0
    late_s = 1.0

    def __init__(self, _dsn: str = "") -> None:
        """Connect."""

    def read(self) -> CounterReading:
        """A counter that stands still."""
        return CounterReading({"commits": 7}, "")

    def transactions(self, counts: Mapping[str, int]) -> int:
        """Transactions of these increases."""
        return counts["commits"]

    def uncounted(self, _counts: Mapping[str, int]) -> None:
        """Count all."""

    def second(self) -> Server:
        """Another session."""
        return self

    def watch(self) -> None:
        """Prepare."""

    def close(self) -> None:
        """Disconnect."""

    def sizes(self) -> None:
        """Fail."""
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TierwiseError("no client session was seen", "")])
def test_a_failed_observation_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(Server, "error", error, raising=False)
    monkeypatch.setattr(observe, "SESSIONS", {"postgresql": Server})
    with pytest.raises(type(error)):
        observe.observe_server(Dsn("postgresql", "postgresql://server"), tmp_path / "out", 1.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("counted_s", "expected"), [(4.0, "off by 25\u00a0%"), (0.1, "off by 100\u00a0%"), (60.0, "")]
)
def test_rates_of_a_short_observation_say_that_sessions_report_late(
    monkeypatch: pytest.MonkeyPatch, counted_s: float, expected: str
) -> None:
    clock = iter([0.0, counted_s, counted_s])
    monkeypatch.setattr(observe, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    server = cast("Any", Server())
    limits = observe._CounterIncreases(server, server).finish()
    assert len(limits) == bool(expected) and all(expected in limit for limit in limits)


def test_a_pause_before_the_first_act_is_a_clients_pause_and_an_unused_session_is_none() -> None:
    """Else an observation counts half a pause too little, and one shorter than the pauses most of them."""
    idle, busy = SessionState("idle", "client", None), SessionState("active", "cpu", None)
    looks = [
        SessionSample(Counter(), frozenset(), {1: idle, 2: idle, 3: idle}),
        SessionSample(Counter(), frozenset(), {1: idle, 2: idle}),  # 3 ended, and never did anything
        SessionSample(Counter([busy]), frozenset([1]), {2: idle}),
        SessionSample(Counter([idle]), frozenset([1]), {2: idle}),
    ]
    session = SimpleNamespace(look=lambda _: looks.pop(0), limits=[])
    tally = observe._WaitTally(cast("Any", session), None)
    for _ in range(4):
        tally.sample_waits(0.0)
    assert {wait.event: wait.sessions for wait in tally.waits({})} == {"idle": 0.75, "active": 0.25}
    (limit,) = tally.limits(8.0)
    assert limit.startswith("1 session did nothing for 8 s")
