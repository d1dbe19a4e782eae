"""An observation that fails leaves nothing behind, and a short one says what it cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tierwise.capture import observe
from tierwise.capture.sql_session import Dsn, Reading
from tierwise.model.errors import TierwiseError


class Server:
    """A server that answers until its catalogue is read."""

    error: BaseException
    asked = 0
    late_s = 1.0

    def __init__(self, _dsn: str = "") -> None:
        """Connect."""

    def read(self) -> Reading:
        """A counter that stands still."""
        return Reading({"commits": 7}, "")

    def transactions(self, counts: Mapping[str, int]) -> int:
        """Transactions of these increases."""
        return counts["commits"]

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
        observe.observe(Dsn("postgresql", "postgresql://server"), tmp_path / "out", 1.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("counted_s", "expected"), [(4.0, "off by 25%"), (0.1, "off by 100%"), (60.0, "")])
def test_rates_of_a_short_observation_say_that_sessions_report_late(
    monkeypatch: pytest.MonkeyPatch, counted_s: float, expected: str
) -> None:
    clock = iter([0.0, counted_s, counted_s])
    monkeypatch.setattr(observe, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    server = cast("Any", Server())
    limits = observe._Counting(server, server).finish()
    assert len(limits) == bool(expected) and all(expected in limit for limit in limits)
