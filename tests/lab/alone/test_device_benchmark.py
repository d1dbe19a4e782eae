"""A study of emulated devices: they differ as their profiles do."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tierwise.lab import studies as study
from tierwise.lab.cli.progress import StudyProgress
from tierwise.lab.studies import runner
from tierwise.results import RunResult
from tierwise.results.files import read_results

PATTERNS = ["seq1m-q8t1-read", "rnd4k-q1t1-write", "mixed70-4k-qd4"]
TEXT = f"""
name = "small-benchmark"
question = "What does it give?"
engines = ["file"]
workload = "patterns"
clients = 1
seconds = 1.5
warmup_transactions = 0
repeats = 2
baseline = "one"
patterns = {PATTERNS}
[sizes]
data = "64M"
[devices.one]
profile = "ssd-nvme-dc"
[devices.two]
profile = "hdd-7k2"
[placements.one]
default = "one"
[placements.two]
default = "two"
"""


def finished(chosen: study.Study, out: Path) -> tuple[Path, list[RunResult]]:
    with StudyProgress(Console(quiet=True)) as progress:
        directory = runner.run_study(chosen, out, progress, seed=3)
    return directory, read_results(directory / runner.RESULTS_FILE)


def test_emulated_devices_differ_as_their_profiles_do(tmp_path: Path) -> None:
    _, results = finished(study.parse(TEXT.replace("repeats = 2", "repeats = 1"), "s.toml"), tmp_path)
    rates = {run.placement: run.patterns["rnd4k-q1t1-write"].rate_per_s for run in results}
    assert rates["two"] < 200, "a disk without a write cache writes once in half a turn and a seek"
    assert rates["one"] > 2 * rates["two"]
    verdicts = {run.placement: run.flush.verdict for run in results if run.flush}
    assert verdicts["two"] == "honest"
