"""``tierwise study run`` and ``list``: what their options choose, and what they refuse."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from support.results_factory import INFO
from tierwise.cli import app
from tierwise.lab import studies as study
from tierwise.lab.studies.runner import study_runner
from tierwise.lab.studies.study_options import StudyOptions
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

pytestmark = pytest.mark.usefixtures("run_dir")


CRUD = study.load_study("crud")


def test_options_change_the_study() -> None:
    quick = StudyOptions(quick=True, repeats=2, engine="sqlite").applied_to(CRUD)
    assert (quick.repeats, quick.engines, quick.scale) == (2, ["sqlite"], CRUD.quick.scale)
    assert StudyOptions(scale="7").applied_to(CRUD).scale == 7
    assert StudyOptions(scale="paper").applied_to(CRUD).scale == CRUD.paper_scale.scale
    load = StudyOptions(clients=32, duration_s=5.0, set=["memory=256M", "constants.size=9"]).applied_to(CRUD)
    assert (load.clients, load.seconds, load.transactions, load.memory) == (32, 5.0, None, 256 << 20)
    assert load.constants["size"] == 9


def test_a_setting_of_an_engine_that_does_not_run_is_refused() -> None:
    given = ["settings.postgres.work_mem=1MB"]
    for engine in ("postgres", "postgres-system"):
        chosen = StudyOptions(set=given, engine=engine).applied_to(CRUD)
        assert chosen.settings_of(engine)["work_mem"] == "1MB"
    with pytest.raises(TierwiseError, match=r"--set settings.*: the study runs on sqlite"):
        StudyOptions(set=given, engine="sqlite").applied_to(CRUD)


def test_the_baseline_is_run_too_unless_it_is_left_out() -> None:
    chosen = StudyOptions(quick=True, placements=["doublewrite-ssd"]).applied_to(CRUD)
    assert list(chosen.placements) == ["all-hdd", "doublewrite-ssd"] and chosen.baseline == "all-hdd"
    others = StudyOptions(only=True).applied_to(CRUD)
    assert list(others.placements) == [name for name in CRUD.placements if name != CRUD.baseline]
    alone = StudyOptions(placements=["doublewrite-ssd"], only=True).applied_to(CRUD)
    assert list(alone.placements) == ["doublewrite-ssd"] and alone.baseline == "doublewrite-ssd"


@pytest.mark.parametrize(
    ("given", "asked", "warned"),
    [
        ("", [], True),
        ("clients = 1", [], False),
        ("sweep.clients = [1, 4]", [], False),
        ("", ["--clients", "2"], False),
    ],
)
def test_clients_that_only_the_workload_gives_are_not_run_in_silence(
    given: str, asked: list[str], warned: bool, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nquestion = "?"\nengines = ["sqlite"]\nworkload = "order_entry"\ntransactions = 9\n'
        f'repeats = 1\nbaseline = "a"\n{given}\n[devices.d]\nprofile = "ram"\n[placements.a]\ndefault = "d"\n'
    )
    done = CliRunner().invoke(app, ["study", "run", str(file), "--dry-run", *asked])
    assert done.exit_code == 0, done.output
    assert ("is meant for 10: give the study clients = 10" in done.stderr) is warned
    assert warned or not done.stderr


def test_a_dry_run_of_all_lists_what_a_run_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "study_names", lambda: ["commit-rate", "crud"])  # the first is of no paper
    done = CliRunner().invoke(app, ["study", "run", "all", "--dry-run", "--engine", "sqlite"])
    assert done.exit_code == 0, done.output
    assert CRUD.question in done.output and "Source: " in done.output
    assert study.load_study("commit-rate").question not in done.output


def test_a_place_is_one_more_placement(tmp_path: Path) -> None:
    base = CRUD.placements[CRUD.baseline]
    moved = StudyOptions(place=["log=gp3"], placements=["all-ssd"]).applied_to(CRUD)
    assert list(moved.placements) == ["all-hdd", "all-ssd", "log-gp3"]
    added = moved.placements["log-gp3"]
    assert added.device_of(Role.LOG) == "gp3" and added.default == base.default
    assert moved.devices["gp3"].profile == "gp3"
    own = StudyOptions(devices=[f"ssd={tmp_path}", "hdd=7k2"]).applied_to(CRUD)
    assert own.devices["ssd"].path == str(tmp_path) and own.devices["hdd"].profile == "7k2"


def test_devices_with_like_names_stay_apart(tmp_path: Path) -> None:
    """The names are cut, and one may be that of a device of the study."""
    arrays = ["array-raid0-12x-ssd-sata-slc-2008", "array-raid0-4x-ssd-sata-slc-2008"]
    study = StudyOptions(place=[f"log={arrays[0]},data={arrays[1]}", f"log={tmp_path}/ssd.toml"]).applied_to(
        CRUD
    )
    first, second = list(study.placements.values())[-2:]
    placed = [study.devices[first.device_of(role)].profile for role in (Role.LOG, Role.DATA)]
    assert placed == arrays
    assert study.devices[second.device_of(Role.LOG)].profile == f"{tmp_path}/ssd.toml"
    assert study.devices["ssd"] == CRUD.devices["ssd"]


def test_a_quick_study_keeps_its_few_placements_beside_a_place() -> None:
    quick = StudyOptions(quick=True, place=["log=gp3"]).applied_to(CRUD)
    few = StudyOptions(quick=True).applied_to(CRUD)
    assert list(quick.placements) == [*few.placements, "log-gp3"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (StudyOptions(set=["memory"]), "--set"),
        (StudyOptions(set=["colour=red"]), "--set colour=red"),
        (StudyOptions(devices=["ssd"]), "--device"),
        (StudyOptions(devices=["sdd=/tmp"]), "did you mean ssd"),
        (StudyOptions(place=["log"]), "--place"),
        (StudyOptions(placements=["all-sdd"]), "no placement"),
    ],
)
def test_what_makes_no_sense_is_named(options: StudyOptions, says: str) -> None:
    with pytest.raises(TierwiseError, match=says):
        options.applied_to(CRUD)


@pytest.mark.parametrize("scale", ["0", "-1", "inf", "nan", "huge"])
def test_an_impossible_scale_names_the_option(scale: str) -> None:
    with pytest.raises(TierwiseError, match=r"--scale: .* is no scale"):
        StudyOptions(scale=scale).applied_to(CRUD)


def test_fresh_and_resume_exclude_each_other() -> None:
    result = CliRunner().invoke(app, ["study", "run", "crud", "--fresh", "--resume"])
    assert str(result.exception).startswith("--fresh and --resume")


def test_studies_lists_every_study_with_its_time() -> None:
    result = CliRunner().invoke(app, ["study", "list"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert all(name in result.output for name in study.study_names())
    assert "min" in result.output


@pytest.mark.parametrize("named", [{"place": ["log=gp3"]}, {"devices": ["ssd=gp3"]}])
def test_a_device_that_own_storage_would_replace_is_refused(named: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="--own-storage replaces every device"):
        StudyOptions(own_storage=tmp_path, **named).applied_to(CRUD)


@pytest.mark.parametrize(
    "options",
    [
        StudyOptions(set=["transactions=5", "seconds=3"]),
        StudyOptions(set=["transactions=5"], duration_s=3.0),
    ],
)
def test_transactions_and_a_duration_contradict_each_other(options: StudyOptions) -> None:
    with pytest.raises(TierwiseError, match="a run ends after one of the two"):
        options.applied_to(CRUD)


def test_two_starts_in_one_second_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second was told that the folder exists, and to give a directory that it may write."""
    monkeypatch.setattr(study_runner, "datetime", SimpleNamespace(now=lambda: datetime(2026, 11, 30)))
    first, second = (study_runner._create(INFO, tmp_path) for _ in range(2))
    assert first != second and (tmp_path / INFO.name / "latest").resolve() == second
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, second.name, "latest"]
