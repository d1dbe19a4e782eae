"""``tierwise study run`` with a real engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.lab import studies as study
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.model.errors import TierwiseError
from tierwise.results import RunResult
from tierwise.results.result_files import read_results, read_study_info

pytestmark = pytest.mark.usefixtures("run_dir")


def test_all_goes_on_after_a_study_that_cannot_run(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> study.Study:
        settings = {"postgres": {"shared_bufers": "1MB"}} if name == "crud" else {}
        return shipped(name).model_copy(update={"settings": settings})

    shipped = study.load_study
    monkeypatch.setattr(study, "load_study", load)
    monkeypatch.setattr(study, "study_names", lambda: ["crud", "melbourne"])
    options = ["--quick", "--placements", "all-hdd", "--own-storage", str(own), "--output", str(tmp_path)]
    result = CliRunner().invoke(app, ["study", "run", "all", *options])
    assert result.exit_code == 1, result.output
    assert "study crud: " in result.output and "shared_bufers" in result.output
    melbourne = tmp_path / "melbourne" / runner.LATEST
    assert read_study_info(melbourne / runner.STUDY_FILE).placements == ["all-hdd"]
    runs: list[RunResult] = read_results(melbourne / runner.RESULTS_FILE)
    assert {completed.status for completed in runs} == {"ok"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "melbourne" in page and "shared_bufers" in page


def test_dry_run_lists_the_runs_and_makes_nothing(tmp_path: Path) -> None:
    asked = ["study", "run", "crud", "--place", "log=gp3", "--output", str(tmp_path / "results"), "--dry-run"]
    result = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "log-gp3" in result.output and " runs." in result.output
    assert "Not run: doublewrite-ssd" in result.output
    assert not (tmp_path / "results").exists()
    (tmp_path / "file").write_text("")
    for options, said in (
        (["--record", str(tmp_path / "file" / "in")], "file is not a directory"),
        (["--record", str(tmp_path), "--duty", "2"], "--duty"),
        (["--duty", "1/5"], "--duty is of --record"),
    ):
        refused = CliRunner().invoke(app, [*asked, *options])
        assert isinstance(refused.exception, TierwiseError) and said in str(refused.exception)
    nothing = CliRunner().invoke(app, ["study", "run", "power-cut", "--record", str(tmp_path), "--dry-run"])
    assert isinstance(nothing.exception, TierwiseError) and "no workload" in str(nothing.exception)
    unrecorded = CliRunner().invoke(app, ["study", "run", "all", "--record", str(tmp_path)])
    assert isinstance(unrecorded.exception, TierwiseError) and "--record" in str(unrecorded.exception)
    unknown = CliRunner().invoke(app, [*asked, "--device", "ssd=no-such-profile"])
    assert isinstance(unknown.exception, TierwiseError) and "no-such-profile" in str(unknown.exception)


def test_a_directory_that_takes_no_folder_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    asked = ["study", "run", "commit-rate", "--own-storage", "/proc", "--output", str(tmp_path / "results")]
    refused = CliRunner().invoke(app, asked)
    assert isinstance(refused.exception, TierwiseError)
    assert "/proc is not a writable directory" in str(refused.exception)
    assert not (tmp_path / "results").exists()
