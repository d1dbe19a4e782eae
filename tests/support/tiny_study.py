"""A study of one placement on this machine's own storage, and whoever listens to the runner."""

from __future__ import annotations

from pathlib import Path

from tierwise.lab import studies as study
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.results import RunResult

_HEAD = """
name = "tiny"
question = "?"
engines = ["{engine}"]
workload = "{workload}"
repeats = 1
baseline = "one"
{fields}
[devices.own]
path = "{own}"
[placements.one]
default = "own"
"""


def tiny_study(own: Path, engine: str, workload: str, fields: str = "") -> Study:
    """One repeat of a workload; ``fields`` are lines of TOML, such as ``scale = 0.1``."""
    text = _HEAD.format(own=own, engine=engine, workload=workload, fields=fields)
    return study.parse_study(text, "tiny.toml")


HOSTED = """
name = "hosted"
question = "?"
engines = ["sqlite"]
workload = "{workload}"
transactions = {transactions}
repeats = {repeats}
baseline = "one"
[devices.own]
path = "{path}"
[devices.other]
path = "{path}"
[placements.one]
default = "own"
[placements.two]
log = "other"
default = "own"
"""
"""Two placements on directories, for a study on many hosts."""


def hosted_study(path: Path, repeats: int, transactions: int = 300, workload: str = "single_commit") -> Study:
    """The study :data:`HOSTED`."""
    text = HOSTED.format(path=path, repeats=repeats, transactions=transactions, workload=workload)
    return study.parse_study(text, "hosted.toml")


class Watcher:
    """Remembers what the runner said."""

    def __init__(self) -> None:
        self.finished_before = 0
        self.results: list[RunResult] = []
        self.skipped: dict[str, str] = {}

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None:
        self.finished_before = finished

    def run_started(self, plan: RunPlan) -> None:
        pass

    def left_out(self, what: str, reason: str) -> None:
        self.skipped[what] = reason

    def phase_started(self, what: str) -> None:
        pass

    def run_finished(self, plan: RunPlan, result: RunResult) -> None:
        self.results.append(result)
