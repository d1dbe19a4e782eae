"""``tierwise validate`` as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.validation_factory import TOML
from tierwise.cli import app


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tierwise.lab.validation.validation_case._missing", lambda _: None)
    file = tmp_path / "cases.toml"
    file.write_text(TOML, "utf-8")
    return file


def test_the_time_is_told_before_anything_runs(cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["validate", str(cases), "--estimate", "--output", str(out)])
    assert result.exit_code == 0, result.output
    assert "3 cases: about" in result.output
    held_back = CliRunner().invoke(
        app, ["validate", str(cases), "--estimate", "--round", "prospective", "--output", str(out)]
    )
    assert "1 case: about" in held_back.output
    assert not out.exists()


def test_an_estimate_checks_what_the_run_would(cases: Path, tmp_path: Path) -> None:
    cases.write_text(
        cases.read_text("utf-8").replace("log-nvme = {", 'log-nvme = { set = "fsink=off", '), "utf-8"
    )
    result = CliRunner().invoke(app, ["validate", str(cases), "--estimate", "-o", str(tmp_path / "out")])
    assert "setting fsink is not among those" in str(result.exception)


def test_a_round_without_a_case_of_its_kind_is_refused(cases: Path, tmp_path: Path) -> None:
    cases.write_text(cases.read_text("utf-8").replace("held_back = true", ""), "utf-8")
    asked = ["validate", str(cases), "--round", "prospective", "--estimate", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, asked)
    assert "has no case to run in a prospective round" in str(result.exception)


def test_judging_nothing_names_the_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", "--judge-only", "--output", str(tmp_path / "none")])
    assert result.exit_code != 0
    assert "holds no validation" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--judge-only", "elsewhere"], "elsewhere is for a round"),
        (["--judge-only", "--case", "simple"], "--case is for a round"),
        (["--quick", "--case", "simple"], "--quick and --case both choose cases"),
        (["--judge-only", "--seed", "0"], "--seed is for a round"),
        (["--judge-only", "--round", "prospective"], "--round is for a round"),
        (["--judge-only", "--recordings", "20M"], "--recordings says what --publish copies"),
    ],
)
def test_what_would_not_be_heeded_is_refused(options: list[str], named: str) -> None:
    result = CliRunner().invoke(app, ["validate", *options])
    assert named in str(result.exception)
