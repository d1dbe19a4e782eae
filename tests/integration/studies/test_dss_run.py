"""Decision support from its load to its scores, run as a study on a real SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tiny_study import Watcher, tiny_study
from tierwise import _core
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.workloads.dss.query_parameters import QUERIES

pytestmark = pytest.mark.usefixtures("run_dir")


def test_from_load_to_scores(own: Path, tmp_path: Path) -> None:
    fields = "scale = 0.1\nconstants.load = 1\nconstants.streams = 1"
    tiny = tiny_study(own, "sqlite", "dss", fields)
    (result,) = runner.finished_runs_in(runner.run_study(tiny, tmp_path / "results", Watcher(), seed=1))
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
