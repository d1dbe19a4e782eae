"""Schemas: what ships and what is written is valid by them, and mistakes are not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from results_factory import INFO, study_runs
from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.model.shipped import DATA

ROOT = Path(__file__).parents[1]
STUDIES = sorted((DATA / "studies").glob("*.toml"))
WORKLOADS = sorted((DATA / "workloads").glob("*/workload.toml"))


def schema(name: str) -> Draft202012Validator:
    found = json.loads(CliRunner().invoke(app, ["schema", name]).stdout)
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def problems(name: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in schema(name).iter_errors(value)]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_studies_that_ship_are_valid(file: Path) -> None:
    assert not problems("study", tomllib.loads(file.read_text("utf-8")))


@pytest.mark.parametrize("file", WORKLOADS, ids=lambda file: file.parent.name)
def test_workloads_that_ship_are_valid(file: Path) -> None:
    assert not problems("workload", tomllib.loads(file.read_text("utf-8")))


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("study", STUDIES[0], {"clints": 3}),
        ("study", STUDIES[0], {"placements": {"a": {"logs": "ssd", "default": "ssd"}}}),
        ("study", STUDIES[0], {"repeats": 0}),
        ("workload", WORKLOADS[0], {"sumary": "?"}),
    ],
)
def test_a_mistake_is_found(name: str, file: Path, change: dict[str, Any]) -> None:
    assert problems(name, {**tomllib.loads(file.read_text("utf-8")), **change})


def test_results_and_recordings_are_valid() -> None:
    for run in study_runs():
        assert not problems("result", json.loads(run.model_dump_json()))
    assert not problems("study-info", json.loads(INFO.model_dump_json()))
    for file in (ROOT / "examples" / "recordings").glob("*/about.json"):
        assert not problems("recording", json.loads(file.read_text("utf-8")))


def test_every_name_has_a_schema() -> None:
    names = CliRunner().invoke(app, ["schema"]).stdout.split()
    assert len(names) == 10
    for name in names:
        assert schema(name).schema["title"]
    assert "did you mean study" in str(CliRunner().invoke(app, ["schema", "studi"]).exception)


def test_predictions_are_valid() -> None:
    recording = str(ROOT / "examples" / "recordings" / "keyed-update")
    shown = CliRunner().invoke(app, ["predict", recording, "--place", "data=nvme-dc", "--format", "json"])
    told = json.loads(shown.stdout)
    assert (told["schema"], told["schema_version"]) == ("prediction", 1)
    assert not [problem for one in told["predictions"] for problem in problems("prediction", one)]
