"""Decision support from its load to its scores, run as a study on a real SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise import _core, lab, study
from tierwise.dss.parameters import QUERIES
from tierwise.results import RunResult
from tierwise.study.plan import RunPlan

pytestmark = pytest.mark.usefixtures("run_dir")

STUDY = """
name = "tiny"
question = "?"
engines = ["sqlite"]
workload = "dss"
scale = 0.1
constants.load = 1
constants.streams = 1
repeats = 1
baseline = "one"
[devices.own]
path = "{path}"
[placements.one]
default = "own"
"""


class Watcher:
    """Hears the lab and says nothing."""

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None: ...
    def run_started(self, plan: RunPlan) -> None: ...
    def placement_skipped(self, placement: str, reason: str) -> None: ...
    def phase_started(self, what: str) -> None: ...
    def run_finished(self, plan: RunPlan, result: RunResult) -> None: ...


def test_from_load_to_scores(own: Path, tmp_path: Path) -> None:
    tiny = study.parse(STUDY.format(path=own), "tiny.toml")
    (result,) = lab.results_in(lab.run_study(tiny, tmp_path / "results", Watcher(), seed=1))
    assert (result.status, result.problems) == ("ok", [])
    laps = {lap.name: lap for lap in result.laps}
    assert {lap.status for lap in result.laps} == {"ok"}
    assert len(laps) == len(result.laps) == 8 + 16 + 24 + 24
    assert laps["load orders"].rows == _core.tpch_rows("orders", 0.01)
    assert [lap.name for lap in result.laps[:2]] == ["load lineitem", "load orders"]
    assert 2 * 15 <= (laps["rf1"].rows or 0) <= 8 * 15  # 15 orders with 1 to 7 items each
    assert {laps[f"s1.q{query}"].stream for query in QUERIES} == {0}
    metrics = {"power", "throughput", "composite"}
    assert set(result.scores) == metrics | {f"{metric}_unrounded" for metric in metrics}
    assert result.scores["power_unrounded"] > result.scores["power"] > 0
