"""Which cases are run in which order, which runs count, and what is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from support.paths import ROOT
from support.validation_factory import TOML, Watcher, row
from tierwise import validation as validate
from tierwise.cli.validate_progress import RoundProgress
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.results import ColdStart, WarmFile
from tierwise.validation import Row, clients, control
from tierwise.validation.control import Reading
from tierwise.validation.order import Session
from tierwise.validation.rows import append_row, read_rows
from tierwise.validation.spec import Control, ValidationSpec

STEADY = Reading(cpu_per_s=600, sync_per_s=2000)


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


def _runs(
    session: Session, spec: ValidationSpec, place: Any, base: Row, progress: Any, **_: Any
) -> Iterator[Row]:
    """In place of real runs."""
    for kind in session.kinds:
        yield base.model_copy(update={"kind": kind, "control": [STEADY] * 2, "rate_per_s": 100.0})


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, everything_installed: None) -> None:
    monkeypatch.setattr("tierwise.validation.session.run_session", _runs)
    monkeypatch.setattr("tierwise.validation.control.read", lambda *_: STEADY)
    monkeypatch.setattr("tierwise.validation.runner._own_profile", lambda *_: None)
    monkeypatch.setattr("tierwise.validation.runner.model_name", lambda: "abc")


def test_a_further_round_has_other_placements(spec: ValidationSpec, everything_installed: None) -> None:
    def placements(rotation: int) -> list[str]:
        return list(validate.cases_of(spec, rotation=rotation)[0][0].study.placements)

    assert placements(0) == ["all-nvme", "all-7k2", "log-nvme"] or set(placements(0)) == {
        "all-nvme", "log-nvme", "all-7k2",
    }  # fmt: skip
    assert set(placements(1)) == {"all-nvme", "own", "log-nvme"}


def test_the_cases_of_the_page_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "evidence" / "validation.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(validate.load(_file(tmp_path, example)).cases) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('disk = "hdd-7k2"', "", "unknown device 'disk'"),
        ('log = "nvme", all', 'lag = "nvme", all', "unknown role 'lag'"),
        ('recorded = ["all-nvme"', 'recorded = ["fast"', "unknown placements fast"),
        ('client = "postgres-jobs"', "", "client or a workload"),
        ("repeats = 2", "repeats = 0", "repeats"),
        ("[devices]", "[devices", "TOML"),
    ],
)
def test_wrong_cases_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(TierwiseError, match=message) as refused:
        validate.load(_file(tmp_path, TOML.replace(old, new)))
    assert "cases.toml" in str(refused.value)


def test_unknown_clients_and_options_are_refused() -> None:
    with pytest.raises(TierwiseError, match="no client 'pgbanch'"):
        clients.create("pgbanch", {}, 1)
    with pytest.raises(TierwiseError, match="no option 'size'"):
        clients.create("pgbench", {"size": 3}, 1)


def test_a_missing_client_leaves_its_cases_out(spec: ValidationSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.host.programs.find", lambda _: None)
    monkeypatch.setattr("tierwise.validation.servers.missing", lambda _: None)
    cases, left_out = validate.cases_of(spec)
    assert not cases
    assert left_out["accounts-4"] == "pgbench is not installed (Debian: postgresql-15)"


def test_cases_are_chosen_by_name(spec: ValidationSpec, everything_installed: None) -> None:
    def names(quick: bool, *given: str) -> list[str]:
        return [case.name for case in validate.cases_of(spec, quick, given)[0]]

    assert names(True) == ["restore"]
    assert names(False, "accounts") == ["accounts-1", "accounts-4"]
    with pytest.raises(TierwiseError, match="no case 'account'"):
        names(False, "account")


def test_every_block_records_and_measures_in_random_order(
    spec: ValidationSpec, everything_installed: None
) -> None:
    cases, _ = validate.cases_of(spec)
    sessions = validate.plan(cases, spec.repeats, seed=3)
    slots = [slot for one in sessions for slot in one.slots]
    assert len(slots) == len(set(slots)) == 2 * (2 * (3 + 1) + (2 + 1))
    for block in range(2):
        recorded = {slot[:2] for slot in slots if slot[2:] == ("recorded", block)}
        assert recorded == {
            ("accounts-1", "all-nvme"), ("accounts-4", "all-nvme"), ("restore", "all-7k2"),
        }  # fmt: skip
    orders = [[one.slots[0][:2] for one in sessions if one.block == block] for block in range(2)]
    assert orders[0] != orders[1]
    assert sessions == validate.plan(cases, spec.repeats, seed=3)
    both = {one.kinds for one in validate.plan(cases, 20, seed=3) if len(one.kinds) == 2}
    assert both == {("measured", "recorded"), ("recorded", "measured")}
    assert all(len(one.kinds) == 1 for one in sessions if one.case.laps), "laps change what they work on"


def test_a_stopped_round_goes_on(
    spec: ValidationSpec, tmp_path: Path, faked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, _ = validate.cases_of(spec)

    def stops(session: Session, *rest: Any, **_: Any) -> Iterator[Row]:
        if len(read_rows(tmp_path / "v")) >= 4:
            raise KeyboardInterrupt
        yield from _runs(session, *rest)

    monkeypatch.setattr("tierwise.validation.session.run_session", stops)
    with pytest.raises(KeyboardInterrupt):
        validate.run(spec, cases, tmp_path / "v", Watcher(), seed=1)
    before = [one.slot for one in read_rows(tmp_path / "v")]
    monkeypatch.setattr("tierwise.validation.session.run_session", _runs)
    watcher = Watcher()
    validate.run(spec, cases, tmp_path / "v", watcher)
    after = [one.slot for one in watcher.rows]
    assert not set(before) & set(after)
    assert len(before) + len(after) == 22


def test_a_run_that_did_not_start_cold_says_so_also_on_a_terminal() -> None:
    warm = WarmFile(role=Role.LOG, file="wal", resident_bytes=1 << 20)
    cold = ColdStart(dropped="own files", warm=[warm])
    with StringIO() as text:
        console = Console(file=text, force_terminal=True, width=200)
        RoundProgress(console).run_finished(row(block=0).model_copy(update={"cold_start": cold}))
        assert "not cold: 1,024 KiB of wal (log) stayed in the page cache" in text.getvalue()


def test_what_was_cut_off_is_run_again(tmp_path: Path) -> None:
    append_row(tmp_path, row(block=0))
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"case": "acc')
    assert len(read_rows(tmp_path)) == 1
    append_row(tmp_path, row(block=1))
    assert [one.block for one in read_rows(tmp_path)] == [0, 1]


def test_a_disturbed_run_is_repeated_at_most_twice(
    spec: ValidationSpec, tmp_path: Path, faked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, _ = validate.cases_of(spec, names=["restore"])
    slow = Reading(cpu_per_s=500, sync_per_s=2000)

    def disturbed(session: Session, *rest: Any, **_: Any) -> Iterator[Row]:
        for one in _runs(session, *rest):
            bad = session.placement == "all-7k2" and session.block == 0 and one.kind == "measured"
            late = session.placement == "log-nvme" and session.block == 1
            before = len([row for row in read_rows(tmp_path / "v") if row.slot == one.slot])
            yield one.model_copy(
                update={
                    "control": [STEADY, slow if bad else STEADY],
                    "late_share": 0.03 if late and before == 0 else 0.001,
                }
            )

    monkeypatch.setattr("tierwise.validation.session.run_session", disturbed)
    validate.run(spec, cases, tmp_path / "v", Watcher(), seed=1)
    rows = read_rows(tmp_path / "v")
    bad = [one for one in rows if one.slot == ("restore", "all-7k2", "measured", 0)]
    assert [one.status for one in bad] == ["spoilt"] * 3
    assert "cpu was 16.7% below" in bad[0].problems[0]
    late = [one for one in rows if one.slot == ("restore", "log-nvme", "measured", 1)]
    assert [one.status for one in late] == ["spoilt", "ok"]
    assert "late by 3.0%" in late[0].problems[0]


def test_other_cases_or_another_model_need_another_folder(
    spec: ValidationSpec, tmp_path: Path, faked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, _ = validate.cases_of(spec, names=["restore"])
    validate.run(spec, cases, tmp_path / "v", Watcher(), round="prospective")
    other = validate.load(_file(tmp_path, TOML.replace("seconds = 30", "seconds = 31")))
    with pytest.raises(TierwiseError, match="other cases"):
        validate.run(other, cases, tmp_path / "v", Watcher(), round="prospective")
    with pytest.raises(TierwiseError, match="prospective round"):
        validate.run(spec, cases, tmp_path / "v", Watcher())
    monkeypatch.setattr("tierwise.validation.runner.model_name", lambda: "abc-dirty")
    with pytest.raises(TierwiseError, match="differ from their commit"):
        validate.run(spec, cases, tmp_path / "w", Watcher(), round="prospective")
    monkeypatch.setattr("tierwise.validation.runner.model_name", lambda: "another")
    with pytest.raises(TierwiseError, match="is of model"):
        validate.run(spec, cases, tmp_path / "v", Watcher(), round="prospective")
    validate.run(other, cases, tmp_path / "v", Watcher(), fresh=True)


def test_the_control_workload_reads_both(tmp_path: Path) -> None:
    found = control.read(Control(cpu_s=0.02, sync_s=0.02), tmp_path)
    assert found.cpu_per_s > 1
    assert found.sync_per_s > 1
    assert not list(tmp_path.iterdir())


def test_few_readings_reject_nothing() -> None:
    slow = Reading(cpu_per_s=300, sync_per_s=2000)
    bounds = Control()
    assert control.slower([slow], [STEADY] * 4, [], bounds) is None
    assert control.slower([slow], [STEADY] * 5, [], bounds) is not None
    quick = Reading(cpu_per_s=900, sync_per_s=9000)
    assert control.slower([quick], [STEADY] * 5, [STEADY] * 5, bounds) is None
    jittery = Reading(cpu_per_s=600, sync_per_s=1300)
    assert control.slower([jittery], [STEADY] * 5, [STEADY] * 4, bounds) is None
    assert control.slower([jittery], [STEADY] * 5, [STEADY] * 5, bounds) is not None
