"""``tierwise run`` and ``tierwise studies``: what their options choose, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tierwise import lab, study
from tierwise.cli import app
from tierwise.cli.study import _Wanted
from tierwise.errors import TierwiseError
from tierwise.results import RunResult
from tierwise.results.files import read_results, read_study_info

pytestmark = pytest.mark.usefixtures("run_dir")


def test_options_change_the_study() -> None:
    quick = _Wanted(quick=True, repeats=2, engine="sqlite").load("crud")
    assert (quick.repeats, quick.engines) == (2, ["sqlite"])
    assert quick.scale == study.load("crud").quick.scale
    assert _Wanted(scale="7").load("crud").scale == 7
    assert _Wanted(scale="paper").load("crud").scale == study.load("crud").paper_scale.scale
    chosen = _Wanted(quick=True, placements=["doublewrite-ssd"]).load("crud")
    assert list(chosen.placements) == ["doublewrite-ssd"] and chosen.baseline == "doublewrite-ssd"


@pytest.mark.parametrize("scale", ["0", "-1", "inf", "nan", "huge"])
def test_an_impossible_scale_names_the_option(scale: str) -> None:
    with pytest.raises(TierwiseError, match=r"--scale: .* is no scale"):
        _Wanted(scale=scale).load("crud")


def test_fresh_and_resume_exclude_each_other() -> None:
    result = CliRunner().invoke(app, ["run", "crud", "--fresh", "--resume"])
    assert str(result.exception).startswith("--fresh and --resume")


def test_studies_lists_every_study_with_its_time() -> None:
    result = CliRunner().invoke(app, ["studies"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert all(name in result.output for name in study.names())
    assert "min" in result.output


def test_all_goes_on_after_a_study_that_cannot_run(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> study.Study:
        settings = {"postgres": {"shared_bufers": "1MB"}} if name == "crud" else {}
        return shipped(name).model_copy(update={"settings": settings})

    shipped = study.load
    monkeypatch.setattr(study, "load", load)
    monkeypatch.setattr(study, "names", lambda: ["crud", "melbourne"])
    options = ["--quick", "--placement", "all-hdd", "--own-storage", str(own), "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["run", "all", *options])
    assert result.exit_code == 1, result.output
    assert "study crud: " in result.output and "shared_bufers" in result.output
    melbourne = tmp_path / "melbourne" / lab.LATEST
    assert read_study_info(melbourne / lab.STUDY_FILE).placements == ["all-hdd"]
    runs: list[RunResult] = read_results(melbourne / lab.RESULTS_FILE)
    assert {one.status for one in runs} == {"ok"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "melbourne" in page and "shared_bufers" in page
