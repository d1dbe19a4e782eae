"""Figures that follow from the counts of a device benchmark."""

from __future__ import annotations

from support.results_factory import Make, run
from tierwise.lab.studies.runner.pattern_run import MeasuredPatterns
from tierwise.lab.studies.runner.run_storage import DeviceIoCounts
from tierwise.results.measurements import FlushCheck, PatternResult

READS = PatternResult(requests=3000, bytes=12_000_000, elapsed_s=1.5)
WRITES = PatternResult(requests=500, bytes=1_000_000, elapsed_s=0.5)


def test_rates_are_per_second() -> None:
    assert READS.rate_per_s == 2000
    assert READS.mb_per_s == 8


def test_patterns_add_up() -> None:
    flush = FlushCheck.model_construct()
    measured = MeasuredPatterns({"reads": READS, "writes": WRITES}, flush, DeviceIoCounts({}, [], None, []))
    assert (measured.requests, measured.elapsed_s) == (3500, 2.0)
    assert measured.record(run(Make())).rate_per_s == 1750
