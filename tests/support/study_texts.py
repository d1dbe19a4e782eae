"""Texts of studies that several tests read."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tierwise.lab import studies as study
from tierwise.lab.cli.progress import StudyProgress
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.results import RunResult
from tierwise.results.result_files import read_results

SWEPT = """
name = "s"
question = "?"
engines = ["postgres", "sqlite"]
workload = "crud"
constants.size = 100
transactions = 10
repeats = 2
baseline = "a"
[devices.d]
profile = "ram"
[devices.e]
profile = "zero"
[placements.a]
default = "d"
[placements.b]
log = "e"
default = "d"
[settings.postgres]
work_mem = "4MB"
[sweep]
memory = ["64M", "1G"]
constants.n = [100, 2000]
variant = ["plain", "odd"]
[variants.plain]
[variants.odd]
settings.postgres.log_members = "2"
constants.size = 7
[quick]
scale = 0.5
seconds = 3
repeats = 1
placements = ["b"]
sweep = { memory = ["32M"] }
sizes.log = "16M"
"""

PATTERNS = ["seq1m-q8t1-read", "rnd4k-q1t1-write", "mixed70-4k-qd4"]
BENCHMARK = f"""
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
    """Run a study; give its directory and its results."""
    with StudyProgress(Console(quiet=True)) as progress:
        directory = runner.run_study(chosen, out, progress, seed=3)
    return directory, read_results(directory / runner.RESULTS_FILE)
