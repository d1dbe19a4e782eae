"""Forecasts against recordings taken after the move: what came true, and each planted reason otherwise."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from support.observations import observation
from support.paths import ROOT
from support.schemas import problems
from tierwise.advise.differences import ConditionDifference
from tierwise.advise.verification import ForecastVerification, verify_forecast
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording import write_observation
from tierwise.report.recording.verification_report import remainder_sentence, verification_headline

RECORDING = ROOT / "examples" / "recordings" / "order-entry"
ONE_STATEMENT = ROOT / "docs/evidence/validation/building/recordings/select-cold-8/all-7k2/recorded-1"
"""Eight clients, one statement a transaction."""
ONCE = ROOT / "examples" / "recordings" / "keyed-update"

TABLES = ROOT / "examples" / "recordings" / "pgbench-10gb"
NAMES = ROOT / "examples" / "recordings" / "pgbench-10gb.names.csv"
ACCOUNTS = "table:public.pgbench_accounts"
SEEDS = ("--seeds", "2")


def verify(
    forecast: Path, recording: Path, place: dict[str, str] | None = None, names: Path | None = None
) -> ForecastVerification:
    return verify_forecast(forecast, recording, place, seeds=2, names=names)


@cache
def printed(*arguments: str | Path) -> str:
    """What a command prints as JSON."""
    return CliRunner().invoke(app, [*map(str, arguments), *SEEDS, "--format", "json"]).stdout


def forecast(directory: Path, *arguments: str | Path) -> Path:
    """The same, in a file."""
    path = directory / "forecast.json"
    path.write_text(printed(*arguments))
    return path


def changed(path: Path, change: Any) -> Path:
    """The JSON of a file after a change."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def on_real_disks(directory: Path, **log: Any) -> Path:
    """The recording as if its devices were real ones, the log on its own; ``log`` changes that one."""
    copy = directory / "after"
    shutil.copytree(RECORDING, copy)

    def change(about: dict[str, Any]) -> None:
        for device in about["devices"]:
            device["profile"] = None
            if "log" in device["roles"]:
                device |= {"shared": 99, **log}

    changed(copy / "about.json", change)
    return copy


def kinds(verification: ForecastVerification) -> list[tuple[str, Role | None]]:
    return [(difference.kind, difference.role) for difference in verification.differences]


def test_what_is_reproduced_comes_true(tmp_path: Path) -> None:
    verification = verify(forecast(tmp_path, "predict", RECORDING), RECORDING)
    assert verification.inside
    assert [figure.what for figure in verification.figures] == ["rate", "p50", "p99"]
    assert not verification.differences and not verification.work


def test_work_done_once_is_compared_by_its_time(tmp_path: Path) -> None:
    verification = verify(forecast(tmp_path, "predict", ONCE), ONCE)
    assert [figure.what for figure in verification.figures] == ["time"]
    assert verification.inside


def test_more_clients_are_found_and_explain(tmp_path: Path) -> None:
    verification = verify(forecast(tmp_path, "predict", ONE_STATEMENT, "--clients", "1"), ONE_STATEMENT)
    (difference,) = verification.differences
    assert (difference.kind, difference.predicted, difference.measured) == ("clients", 1, 8)
    assert difference.closes == pytest.approx(1, abs=0.1)
    assert verification.explained and not verification.inside


def test_arrivals_are_compared_where_they_were_predicted(tmp_path: Path) -> None:
    verification = verify(forecast(tmp_path, "predict", RECORDING, "--rate", "60"), RECORDING)
    assert kinds(verification) == [("arrivals", None)]
    assert verification.explained and not verification.inside


def test_another_machine_is_found(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["recorded"] |= {"cores": 64, "memory_bytes": 64 << 30}

    verification = verify(changed(forecast(tmp_path, "predict", RECORDING), change), RECORDING)
    assert set(kinds(verification)) == {("cores", None), ("memory", None)}


def test_a_setting_that_was_not_set_is_found_and_explains(tmp_path: Path) -> None:
    """Also where an advice is a setting in place of a move."""
    asked = ["advise", RECORDING, "--devices", "nvme-dc", "--may-lose", "1s"]
    for made in (asked, ["predict", RECORDING, "--set", "synchronous_commit=off"]):
        verification = verify(forecast(tmp_path, *made), RECORDING)
        (difference,) = verification.differences
        assert (difference.kind, difference.predicted) == ("setting", "synchronous_commit=off")
        assert difference.measured == "synchronous_commit=on"
        assert difference.closes == pytest.approx(1, abs=0.1) and verification.explained
    copy = tmp_path / "after"
    shutil.copytree(RECORDING, copy)
    changed(copy / "about.json", lambda about: about["settings"].update(synchronous_commit="off"))
    assert not verify(forecast(tmp_path, *asked), copy).differences


def test_a_role_that_was_not_moved_is_found(tmp_path: Path) -> None:
    """The recommended placement is verified where none of the file's fits the recorded devices."""
    advice = forecast(tmp_path, "advise", RECORDING, "--devices", "nvme-dc")
    verification = verify(advice, RECORDING)
    assert verification.forecast.label == "the best placement"
    assert kinds(verification) == [("placement", Role.LOG)]
    assert verification.explained and not verification.inside


def test_figures_inside_do_not_hide_that_a_role_was_not_moved(tmp_path: Path) -> None:
    """It said that the forecast came true."""

    def widen(content: dict[str, Any]) -> None:
        (prediction,) = content["predictions"]
        for figure in ("rate_per_s", "p50_us", "p99_us"):
            prediction[figure] |= {"low": 1e-3, "high": 1e9}

    made = changed(forecast(tmp_path, "predict", RECORDING, "--place", "log=nvme-dc"), widen)
    verification = verify(made, RECORDING)
    assert verification.inside
    assert verification_headline(verification) == (
        "Every measured figure lies inside its interval, but the log lies on "
        "7,200 rpm SATA nearline disk, not on ssd-nvme-dc."
    )
    moved = verification.model_copy(update={"differences": []})
    assert verification_headline(moved).startswith("The forecast came true: ")
    assert verification_headline(moved.model_copy(update={"usable": False})).startswith(
        "Every measured figure "
    )


def test_an_observation_is_refused_on_either_side(tmp_path: Path) -> None:
    """One after was a division by zero."""
    seen = tmp_path / "seen"
    seen.mkdir()
    write_observation(seen, observation())
    recorded = forecast(tmp_path, "predict", RECORDING)
    with pytest.raises(TierwiseError, match="seen: an observation"):
        verify(recorded, seen)
    with pytest.raises(TierwiseError, match="forecast from an observation"):
        verify(forecast(tmp_path, "predict", seen), RECORDING)


def test_devices_of_tables_are_compared_only_where_the_recording_after_tells_tables(tmp_path: Path) -> None:
    """Requests of the table counted as gone, and as more of the data; a device was blamed that nobody had."""
    moved = forecast(tmp_path, "predict", TABLES, "--names", NAMES, "--place", f"{ACCOUNTS}=nvme-dc")
    verification = verify(moved, TABLES)
    assert not verification.inside and not verification.explained and verification.undone_per_s is None
    assert not (verification.differences or verification.roles or verification.work)
    said = next(text for text in verification.warnings if "no names of tables" in text)
    assert "so neither devices nor requests" in said and "or give --names FILE" in said


def test_tables_that_were_not_moved_are_found(tmp_path: Path) -> None:
    moved = forecast(
        tmp_path, "advise", TABLES, "--names", NAMES, "--by", "table", "--devices", "nvme-dc,gp3"
    )
    verification = verify(moved, TABLES, names=NAMES)
    assert verification.forecast.label.endswith("pgbench_accounts_pkey on ssd-nvme-dc"), "the recommended set"
    assert kinds(verification) == [("placement", Role.SELECTED)]
    assert not [change for change in verification.work if change.role]
    printed_too = json.loads(printed("verify", moved, TABLES, "--names", NAMES))["verification"]
    assert printed_too["differences"][0]["role"] == "selected"
    one = verify(moved, TABLES, {ACCOUNTS: "gp3"}, NAMES)
    assert one.forecast.label == "public.pgbench_accounts on volume-aws-gp3"
    with pytest.raises(TierwiseError, match="predicts no such placement"):
        verify(moved, TABLES, {"log": "gp3"})
    with pytest.raises(TierwiseError, match="--names: the forecast places no table"):
        verify(forecast(tmp_path, "predict", TABLES, "--place", "log=nvme-dc"), TABLES, names=NAMES)


def test_a_rate_inside_explains_no_latency_outside(tmp_path: Path) -> None:
    """The device of the log took longer, which no replay can undo: it was said to be undone."""

    def change(content: dict[str, Any]) -> None:
        (prediction,) = content["predictions"]
        for load in prediction["io"].values():
            load["busy_share"] /= 4
        prediction["p50_us"] = {name: value / 9 for name, value in prediction["p50_us"].items()}

    verification = verify(changed(forecast(tmp_path, "predict", RECORDING), change), RECORDING)
    assert [figure.what for figure in verification.figures if not figure.inside] == ["p50"]
    assert {kind for kind, _ in kinds(verification)} == {"device"}
    assert not verification.explained and verification.undone_per_s is None
    assert remainder_sentence(verification) == "No replay can undo these differences."


def test_the_placement_that_was_made_is_the_one_verified(tmp_path: Path) -> None:
    """The recorded disk is as its profile: advice to move the log away and back again came true."""
    verification = verify(
        forecast(tmp_path, "predict", RECORDING, "--place", "all=nvme-dc", "--place", "all=hdd-7k2"),
        RECORDING,
    )
    assert verification.forecast.prediction.scenario.placement == {"all": "hdd-7k2"}
    assert not [difference for difference in verification.differences if difference.kind == "placement"]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ({}, [("device", Role.LOG)]),
        ({"shared": 1}, [("placement", Role.LOG)]),
        ({"chain": [{"depth": 1, "kind": "disk", "rotational": True}]}, [("placement", Role.LOG)]),
    ],
    ids=["slower than its profile", "beside the data", "on a rotational disk"],
)
def test_a_device_that_is_not_the_promised_one_is_found(
    log: dict[str, Any], expected: list[Any], tmp_path: Path
) -> None:
    verification = verify(
        forecast(tmp_path, "predict", RECORDING, "--place", "log=nvme-dc"), on_real_disks(tmp_path, **log)
    )
    assert kinds(verification) == expected
    assert verification.explained and not verification.inside
    (times,) = [role for role in verification.roles if role.role is Role.LOG]
    assert times.measured_us and times.simulated_us and times.measured_us > 50 * times.simulated_us


def test_another_mix_of_transactions_is_found(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["recorded"]["clients"] = 8

    verification = verify(changed(forecast(tmp_path, "predict", RECORDING), change), ONE_STATEMENT)
    assert not verification.differences
    assert not verification.explained and not verification.inside
    assert [change.what for change in verification.work][:2] == ["requests", "processor time"]


def test_the_command_says_why(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = forecast(tmp_path, "predict", RECORDING, "--place", "log=nvme-dc")
    shown = CliRunner().invoke(app, ["verify", *SEEDS, str(path), str(RECORDING)], env={"COLUMNS": "120"})
    assert shown.exit_code == 1
    assert shown.stdout == snapshot
    assert not problems("verification", json.loads(printed("verify", path, RECORDING)))
    reproduced = forecast(tmp_path, "predict", RECORDING)
    assert CliRunner().invoke(app, ["verify", *SEEDS, str(reproduced), str(RECORDING)]).exit_code == 0


def _other_version(content: dict[str, Any]) -> None:
    content["schema_version"] = 99


def _own_profile(content: dict[str, Any]) -> None:
    content["predictions"][0]["scenario"]["placement"] = {"log": "/etc/passwd"}


def _no_figures(content: dict[str, Any]) -> None:
    content["predictions"][0]["rate_per_s"] = "fast"


def _no_seconds(content: dict[str, Any]) -> None:
    content["predictions"][0]["rate_per_s"]["value"] = 0


def _no_clients(content: dict[str, Any]) -> None:
    content["recorded"]["clients"] = 0


def _infinite(content: dict[str, Any]) -> None:
    content["predictions"][0]["p99_us"]["high"] = float("inf")


def _nothing(content: dict[str, Any]) -> None:
    content["predictions"] = []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_other_version, "version 99 of prediction"),
        (_own_profile, "names the file '/etc/passwd' as a device"),
        (_no_figures, "not as tierwise prints it"),
        (_no_seconds, "not above 0"),
        (_no_clients, "clients"),
        (_infinite, "number Infinity is not finite"),
        (_nothing, "no prediction that was answered"),
    ],
)
def test_a_file_that_is_no_forecast_is_refused(change: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=expected):
        verify(changed(forecast(tmp_path, "predict", RECORDING), change), RECORDING)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"schema": "advice", "schema_version": 1}'])
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "forecast.json"
    path.write_text(text)
    with pytest.raises(TierwiseError, match=r"forecast\.json"):
        verify(path, RECORDING)


def placed(role: Role, measured: str, *beside: Role) -> ConditionDifference:
    """A role that is not on ``ssd-nvme-dc``, where it was to be."""
    return ConditionDifference(
        kind="placement",
        role=role,
        predicted="ssd-nvme-dc",
        measured=measured,
        beside=list(beside),
        rate_per_s=None,
        closes=None,
    )


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([placed(Role.LOG, "NVMe SSD, 2 TB")], "the log lies on NVMe SSD, not on ssd-nvme-dc"),
        ([placed(Role.SELECTED, "NVMe SSD")], "the selected tables lie on NVMe SSD, not on ssd-nvme-dc"),
        (
            [placed(role, "NVMe SSD") for role in (Role.LOG, Role.DATA)],
            "the log and the data lie on NVMe SSD, not on ssd-nvme-dc",
        ),
        (
            [
                placed(
                    Role.INDEX, "the device of the log, the data and the undo", Role.LOG, Role.DATA, Role.UNDO
                )
            ],
            "the indexes lie on the device of the log, the data and the undo, not on ssd-nvme-dc",
        ),
    ],
)
def test_reasons_are_sentences(differences: list[ConditionDifference], expected: str, tmp_path: Path) -> None:
    """It wrote "the selected tables lies", and of several roles on a shared device named the first alone."""
    verification = verify(forecast(tmp_path, "predict", RECORDING), RECORDING)
    shown = verification_headline(verification.model_copy(update={"differences": differences}))
    assert shown == f"Every measured figure lies inside its interval, but {expected}."


def test_a_device_that_the_forecast_does_not_hold_is_not_undone(tmp_path: Path) -> None:
    """The data stayed on the disk before, by the forecast; its place was undone by moving the log."""

    def change(content: dict[str, Any]) -> None:
        content["recorded"]["devices"]["data"] = "another disk, 1 TB"

    path = changed(forecast(tmp_path, "predict", RECORDING, "--place", "log=nvme-dc"), change)
    verification = verify(path, RECORDING)
    undone = {each.role: each.rate_per_s for each in verification.differences}
    assert undone[Role.LOG] and Role.DATA in undone and undone[Role.DATA] is None
    assert "what a replay can undo of this undone" in remainder_sentence(verification)
    assert (
        "the log lies on 7,200 rpm SATA nearline disk, not on ssd-nvme-dc; the data lies"
        in verification_headline(verification)
    )


def test_a_choice_is_asked_for(tmp_path: Path) -> None:
    path = forecast(tmp_path, "predict", RECORDING, "--place", "log=nvme-dc", "--place", "all=nvme-dc")
    with pytest.raises(TierwiseError, match="choose with --place: log=nvme-dc; all=nvme-dc"):
        verify(path, RECORDING)
    assert verify(path, RECORDING, {"log": "ssd-nvme-dc"}).forecast.prediction.scenario.placement == {
        "log": "nvme-dc"
    }
    with pytest.raises(TierwiseError, match="predicts no such placement"):
        verify(path, RECORDING, {"log": "gp3"})
    with pytest.raises(TierwiseError, match="work done once"):
        verify(path, ONCE, {"log": "nvme-dc"})
