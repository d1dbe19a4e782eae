"""Schemas: what ships and what is written is valid by them, and mistakes are not."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.paths import ROOT
from support.results_factory import INFO, study_runs
from support.schemas import problems, schema
from tierwise.cli import app
from tierwise.cli.output import json_with_kind
from tierwise.cli.schema import SCHEMAS
from tierwise.model.input_files import DATA
from tierwise.predict.usability import Usability
from tierwise.recording import Recording
from tierwise.report.recording.recording_report import TakenRecording
from tierwise.results.result_files import append_record, write_study_info

RECORDING = str(ROOT / "examples" / "recordings" / "keyed-update")
OTHER = str(ROOT / "examples" / "recordings" / "order-entry")
LARGE = str(ROOT / "examples" / "recordings" / "pgbench-10gb")
STUDIES = sorted((DATA / "studies").glob("*.toml"))
SOURCES = sorted(DATA.parent.glob("**/cli/*.py"))
KIND = re.compile(r"[a-z]+(-[a-z]+)*")
WORKLOADS = sorted((DATA / "workloads").glob("*/workload.toml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_studies_that_ship_are_valid(file: Path) -> None:
    assert not problems("study", tomllib.loads(file.read_text("utf-8")))


@pytest.mark.parametrize("file", WORKLOADS, ids=lambda file: file.parent.name)
def test_workloads_that_ship_are_valid(file: Path) -> None:
    assert not problems("workload", tomllib.loads(file.read_text("utf-8")))


@pytest.mark.parametrize(
    ("name", "file"), [("validation", DATA / "validation.toml"), ("model-error", DATA / "model_error.toml")]
)
def test_files_of_validations_that_ship_are_valid(name: str, file: Path) -> None:
    content = tomllib.loads(file.read_text("utf-8"))
    assert not problems(name, content)
    assert problems(name, {**content, "unknown": 1})


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


PRINTED = {
    "prediction": ["predict", RECORDING, "--place", "log=nvme-dc"],
    "joint-prediction": [
        *("predict", OTHER, LARGE, "--seeds", "2"),
        *("--place", "order-entry.log=gp3#1,pgbench-10gb.log=gp3#1"),
    ],
    "profile": ["profile", RECORDING],
    "devices": ["device", "list"],
    "profile-by-file": ["profile", "--by", "file", "--names", f"{LARGE}.names.csv", LARGE],
    "recording": ["recording", "show", RECORDING],
    "recordings": ["recording", "list", str(ROOT / "examples" / "recordings")],
    "plan": ["study", "show", STUDIES[0].stem],
    "studies": ["study", "list"],
    "workloads": ["workload", "list"],
    "disks": ["disk", "list"],
    "ranking": ["predict", RECORDING, "--devices", "nvme-dc"],
    "advice": ["advise", RECORDING, "--devices", "nvme-dc"],
    "cleanup": ["clean", "--dry-run"],
    "simulation": ["device", "simulate", "nvme-dc", "--preset", "randread-4k", "--count", "100"],
}


@pytest.mark.parametrize("kind", PRINTED)
def test_what_is_printed_is_valid(kind: str) -> None:
    printed = json.loads(CliRunner().invoke(app, [*PRINTED[kind], "--format", "json"]).stdout)
    assert printed["schema"] == kind
    assert not problems(kind, printed)


def test_every_kind_that_is_printed_has_a_schema() -> None:
    """Each command names the kind of its JSON as text."""
    kinds = {
        node.value
        for file in SOURCES
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("print_result", "json_with_kind")
        for argument in call.args
        if isinstance(argument, ast.Constant | ast.IfExp)
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KIND.fullmatch(node.value)
    }
    assert len(kinds) > 20
    assert kinds <= SCHEMAS.keys()


def test_a_taken_recording_is_valid() -> None:
    content = TakenRecording.of(Recording.open(Path(RECORDING)), Usability()).model_dump(mode="json")
    assert not problems("record", json.loads(json_with_kind(content, "record")))


def test_answers_and_comparisons_are_valid(tmp_path: Path) -> None:
    for run in study_runs():
        append_record(tmp_path / "results.jsonl", run)
    write_study_info(tmp_path / "study.json", INFO)
    answer = CliRunner().invoke(app, ["report", str(tmp_path), "--format", "json"]).stdout
    assert not problems("answer", json.loads(answer))
    comparison = CliRunner().invoke(app, ["compare", str(tmp_path), str(tmp_path), "--format", "json"]).stdout
    assert not problems("comparison", json.loads(comparison))


def test_every_name_has_a_schema() -> None:
    names = CliRunner().invoke(app, ["schema"]).stdout.split()
    assert len(names) == len(set(names)) >= 20
    for name in names:
        shown = schema(name).schema
        assert shown["title"]
        for part in (shown, *shown.get("$defs", {}).values()):
            assert not [
                key for key, value in part.get("properties", {}).items() if not value.get("description")
            ]
    assert "did you mean study" in str(CliRunner().invoke(app, ["schema", "stdy"]).exception)
