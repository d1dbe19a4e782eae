"""Recording's parts that need no tracing: schedule, cost, facts of files, targets."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tierwise.capture import about, target
from tierwise.capture.data_directory import tree_bytes
from tierwise.capture.devices import Devices
from tierwise.capture.extents import extents_of
from tierwise.capture.facts import FileFacts, within
from tierwise.capture.rates import Span, cost_of, waits_of
from tierwise.capture.schedule import Schedule, parse_duty
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.model.units import parse_duration_s


@pytest.mark.parametrize(("text", "duty"), [("1/10", 0.1), ("0.25", 0.25), ("10%", 0.1), ("1", 1.0)])
def test_duty_as_people_write_it(text: str, duty: float) -> None:
    assert parse_duty(text) == pytest.approx(duty)


@pytest.mark.parametrize("text", ["0", "-1/2", "1/0", "2", "often", "nan", "inf", "", "%"])
def test_no_duty(text: str) -> None:
    with pytest.raises(TierwiseError, match="--duty"):
        parse_duty(text)


@pytest.mark.parametrize(
    "options", [{"duty": 0}, {"seconds": 0}, {"seconds": float("nan")}, {"burst_s": 0}, {"burst_s": 1e9}]
)
def test_no_schedule(options: dict[str, float]) -> None:
    with pytest.raises(TierwiseError, match="--"):
        Schedule(**options)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("10min", 600), ("1.5h", 5400), ("500ms", 0.5)]
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration_s(text, "--duration") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "-1s", "10m", "s", "", "ten"])
def test_no_duration(text: str) -> None:
    with pytest.raises(TierwiseError, match="--duration: "):
        parse_duration_s(text, "--duration")


def test_a_data_directory_is_measured_with_what_its_links_lead_to(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (data / "base").mkdir(parents=True)
    elsewhere.mkdir()
    (data / "base" / "1").write_bytes(b"x" * 1000)
    (data / "again").hardlink_to(data / "base" / "1")
    (elsewhere / "log").write_bytes(b"x" * 500)
    (data / "pg_wal").symlink_to("/elsewhere")  # as a container sees it
    (data / "loop").symlink_to("/data")
    assert tree_bytes(data, tmp_path) == 1500
    assert tree_bytes(tmp_path / "none") is None


def test_bursts_take_their_share_of_the_time() -> None:
    schedule = Schedule(None, duty=0.1, burst_s=0.5)
    gaps_s = list(itertools.islice(schedule.gaps_s(), 200))
    duty = 0.5 * len(gaps_s) / (0.5 * len(gaps_s) + sum(gaps_s))
    assert duty == pytest.approx(0.1, rel=0.02)
    assert min(gaps_s) > 0
    assert len({round(gap, 6) for gap in gaps_s}) > 100


def test_cost_compares_each_burst_with_its_neighbours() -> None:
    spans = []
    for number in range(6):
        load = 1000 * (1 + number)  # grows all the time, and is no cost
        spans += [
            Span(False, 1.0, load - 500),
            Span(True, 0.5, round(0.9 * load / 2)),
            Span(False, 1.0, load + 500),
        ]
    cost = cost_of(spans, 200.0)
    assert cost is not None
    assert cost["rate_ratio"] == pytest.approx(0.9, abs=0.01)
    assert cost["rate_ratio_low"] <= cost["rate_ratio"] <= cost["rate_ratio_high"]


def test_no_cost_without_pairs() -> None:
    assert cost_of([Span(True, 1.0, 100)], 200.0) is None
    assert cost_of([Span(False, 1.0, 0), Span(True, 1.0, 0)] * 3, 200.0) is None


def test_waits_of_a_process_that_waits() -> None:
    before = waits_of([os.getpid()])
    for _ in range(20):
        subprocess.run(["true"], check=True)
    assert waits_of([os.getpid()]) > before
    assert waits_of([2**22 + 1]) == 0


def test_facts_of_files(tmp_path: Path) -> None:
    file = tmp_path / "1.log"
    file.write_bytes(b"x" * 100_000)
    os.sync()
    devices = Devices()
    facts = FileFacts(devices, lambda path: Role.LOG if path.endswith(".log") else None)
    deleted = str(tmp_path / "2.log") + " (deleted)"
    found = json.loads(
        facts.resolve(json.dumps([str(file), deleted, "socket:[1]", "/dev/null", str(tmp_path)]), {})
    )
    assert [one["role"] for one in found] == ["log", "log", None, None, None]
    assert [one["size_bytes"] for one in found] == [100_000, 0, 0, 0, 0]
    assert found[0]["device"] == found[1]["device"]
    if found[0]["device"] is not None:
        assert devices.known[found[0]["device"]].roles == {Role.LOG}


def test_extents_cover_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as output:
        output.write(b"x" * 300_000)
        output.flush()
        os.fsync(output.fileno())
    extents = extents_of(file)
    if not extents:
        pytest.skip("this file system tells no extents")
    assert sum(sectors for _, sectors, _ in extents) * 512 >= 300_000
    assert extents[0][2] == 0
    assert extents_of(tmp_path / "none") == []


def test_paths_of_another_root(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("/data")
    (tmp_path / "data" / "up").symlink_to("../../../data/file")
    (tmp_path / "loop").symlink_to("loop")
    assert within(tmp_path, "/link/file") == tmp_path / "data" / "file"
    assert within(tmp_path, "/link/up") == tmp_path / "data" / "file"
    assert within(tmp_path, "/../../etc/passwd") == tmp_path / "etc" / "passwd"
    assert within(tmp_path, "/loop").is_relative_to(tmp_path)


def test_targets_that_are_none() -> None:
    with pytest.raises(TierwiseError, match="no process"):
        target.of_pid(2**22 + 1)
    with pytest.raises(TierwiseError, match=r"is of no engine.*--rules"):
        target.of_pid(os.getpid())
    with pytest.raises(TierwiseError, match="no process named"):
        target.of_engine("versant")


def test_several_servers_are_not_guessed_among(tmp_path: Path) -> None:
    program = tmp_path / "dataserver"
    program.symlink_to(str(shutil.which("cat")))  # whose name the kernel takes for the process
    servers = [subprocess.Popen([program], stdin=subprocess.PIPE) for _ in range(2)]
    try:
        while any(target.program_of(server.pid) != "dataserver" for server in servers):
            time.sleep(0.01)  # the name comes last when a program is begun
        with pytest.raises(TierwiseError, match=f"{min(s.pid for s in servers)}, .*--pid"):
            target.of_engine("ase")
    finally:
        for server in servers:
            server.communicate()


def test_a_memory_limit_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = next(x for x in Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in x or "::" in x)
    group = tmp_path / ("memory" if ":memory:" in line else "") / line.split(":", 2)[2].lstrip("/")
    group.mkdir(parents=True, exist_ok=True)
    name = "memory.limit_in_bytes" if ":memory:" in line else "memory.max"
    (group / name).write_text("123456789\n")
    monkeypatch.setattr(about, "_CGROUP_ROOT", tmp_path)
    assert about.memory_limit_bytes(os.getpid()) == 123456789


def test_memory_of_processes_is_what_they_do_not_share_and_gone_ones_hold_none() -> None:
    own = about.processes_bytes([os.getpid()])
    assert own > 1 << 20
    assert about.processes_bytes([os.getpid(), 1 << 30]) == pytest.approx(own, rel=0.2)
