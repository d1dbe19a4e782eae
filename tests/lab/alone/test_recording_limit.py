"""A recording that its limit bounds, with no other program's requests in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.committer import SQLITE, committing
from tierwise import _core
from tierwise.capture.record import record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget, load_rules

LEAST_LIMIT = 1_000_000


@pytest.mark.skipif(_core.recording_impossible() is not None, reason="nothing can be recorded here")
def test_a_recording_that_would_be_too_large_takes_fewer_events(tmp_path: Path, memory_path: Path) -> None:
    """Commits are at most 2,500 a second, some 60 kB of a recording, also on a faster machine.

    Requests of other programs are events too, and those of another test reached the limit in a second.
    """
    out = tmp_path / "recording"
    with committing(memory_path / "app.db-wal", pause_s=0.0004) as process:
        target = RecordingTarget(lambda: [process.pid], load_rules(SQLITE))
        recorded = record_running_database(
            target, out, BurstSchedule(40.0, 1.0, 0.2, limit_bytes=LEAST_LIMIT), lambda _: None
        )
    assert recorded["duration_s"] > 39
    assert any("events were taken in" in warning for warning in recorded["warnings"])
    assert sum(file.stat().st_size for file in out.iterdir()) <= LEAST_LIMIT
    last_s = (recorded["bursts"][-1]["end_ns"] - recorded["bursts"][0]["start_ns"]) / 1e9
    assert last_s > 30
    assert recorded["cost"]["rate_ratio_low"] > 0
