"""A study of emulated devices: they differ as their profiles do."""

from __future__ import annotations

from pathlib import Path

from support.study_texts import BENCHMARK, finished
from tierwise.lab import studies as study


def test_emulated_devices_differ_as_their_profiles_do(tmp_path: Path) -> None:
    _, results = finished(
        study.parse_study(BENCHMARK.replace("repeats = 2", "repeats = 1"), "s.toml"), tmp_path
    )
    rates = {run.placement: run.patterns["rnd4k-q1t1-write"].rate_per_s for run in results}
    assert rates["two"] < 200, "a disk without a write cache writes once in half a turn and a seek"
    assert rates["one"] > 2 * rates["two"]
    verdicts = {run.placement: run.flush.verdict for run in results if run.flush}
    assert verdicts["two"] == "honest"
