"""Recording's parts that need no kernel: schedule, cost, facts of files, targets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tierwise import _core
from tierwise.capture import target
from tierwise.capture.schedule import BurstSchedule, parse_burst_duty
from tierwise.capture.target import load_rules
from tierwise.model.errors import TierwiseError
from tierwise.model.units import parse_duration_s


@pytest.mark.parametrize(("text", "duty"), [("1/10", 0.1), ("0.25", 0.25), ("10%", 0.1), ("1", 1.0)])
def test_duty_as_people_write_it(text: str, duty: float) -> None:
    assert parse_burst_duty(text) == pytest.approx(duty)


@pytest.mark.parametrize("text", ["0", "-1/2", "1/0", "2", "often", "nan", "inf", "", "%"])
def test_no_duty(text: str) -> None:
    with pytest.raises(TierwiseError, match="--duty"):
        parse_burst_duty(text)


@pytest.mark.parametrize(
    "options",
    [
        {"duty": 0},
        {"duty": 1.1},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"burst_s": 0},
        {"burst_s": 1e9},
        {"seconds": 1.0, "burst_s": 10.0},
        {"limit_bytes": 1},
    ],
)
def test_no_schedule(options: dict[str, float]) -> None:
    with pytest.raises(TierwiseError, match="--"):
        BurstSchedule(**{"seconds": 60.0, "duty": 0.1} | options)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("10min", 600), ("1.5h", 5400), ("500ms", 0.5)]
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration_s(text, "--duration") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "-1s", "10m", "s", "", "ten"])
def test_no_duration(text: str) -> None:
    with pytest.raises(TierwiseError, match="--duration: "):
        parse_duration_s(text, "--duration")


def test_extents_cover_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as output:
        output.write(b"x" * 300_000)
        output.flush()
        os.fsync(output.fileno())
    known = _core.Extents()
    extents = known.of(file)
    if not extents:
        pytest.skip("this file system tells no extents")
    assert sum(sectors for _, sectors, _ in extents) * 512 >= 300_000
    assert extents[0][2] == 0
    assert known.of(tmp_path / "none") == []


def test_targets_that_are_none() -> None:
    with pytest.raises(TierwiseError, match="no process"):
        target.target_of_process(2**22 + 1)
    with pytest.raises(TierwiseError, match=r"is of no engine.*--rules"):
        target.target_of_process(os.getpid())
    with pytest.raises(TierwiseError, match="no process named"):
        target.pid_of_engine("versant")


def test_the_only_server_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[list[str]] = []
    monkeypatch.setattr(_core, "first_processes", lambda programs: named.append(programs) or [os.getpid()])
    assert target.pid_of_engine("postgres") == os.getpid()
    assert "postgres" in named[0]
    assert os.getpid() in target.target_of_process(os.getpid(), load_rules("postgres")).processes()


def test_mysql_and_mariadb_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have the programs of one; --engine mysql was refused."""
    running = {11: "mysql", 12: "mariadb"}
    monkeypatch.setattr(_core, "first_processes", lambda _: list(running))
    monkeypatch.setattr(_core, "engine_of_processes", lambda pids, _: running[pids[0]])
    monkeypatch.setattr(_core, "servers_listed", lambda pids: f"pid {pids[0]}")
    assert target.pid_of_engine("mysql") == 11 and target.pid_of_engine("mariadb") == 12
    del running[11]
    with pytest.raises(TierwiseError, match="no server of mysql runs, but pid 12: name the engine that"):
        target.pid_of_engine("mysql")
    with pytest.raises(TierwiseError, match="did you mean mysql"):
        load_rules("mysq")
