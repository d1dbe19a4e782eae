"""The cases of validation that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.validation_factory import TOML
from tierwise import validation as validate
from tierwise.validation.spec import ValidationSpec


@pytest.fixture
def spec(tmp_path: Path) -> ValidationSpec:
    return validate.load(_file(tmp_path, TOML))


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.validation.case._missing", lambda _: None)


def _file(directory: Path, text: str) -> Path:
    file = directory / "cases.toml"
    file.write_text(text, "utf-8")
    return file


def test_shipped_cases_cover_what_was_promised(everything_installed: None) -> None:
    spec = validate.load()
    cases, left_out = validate.cases_of(spec)
    named = [case for case in cases if case.name != "tpch-duckdb"]
    assert len(cases) >= 25
    assert len({case.family for case in named}) >= 6
    assert not left_out
    assert {spec.kind_of(place) for case in cases for place in case.recorded} == {"real", "emulated"}
    assert all(len(case.study.placements) == 2 for case in cases), "recorded on one, predicted for another"
    planned = validate.plan(cases, spec.repeats, 1)
    assert spec.repeats >= 5
    assert validate.estimate_s(planned, spec, []) < 3.5 * 3600
    assert spec.seconds >= 30
    quick = spec.selected()
    small, _ = validate.cases_of(quick, quick=True)
    assert validate.estimate_s(validate.plan(small, quick.repeats, 1), quick, []) < 600
