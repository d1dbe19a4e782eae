"""A study with a real PostgreSQL at full speed on emulated disks is killed at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tierwise.host import clean
from tierwise.host.disk.disk import DiskStats, EmulatedDisk, all_disks
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.results import RunResult
from tierwise.results.result_files import read_results

LATEST_MOMENT_S = 6.0
STUDY = """
name = "crash"
question = "?"
engines = ["postgres"]
workload = "order_entry"
scale = 0.1
clients = 4
seconds = {seconds}
warmup_transactions = 10
repeats = {repeats}
baseline = "a"
[devices.log]
profile = "hdd-10k-18g-fc"
[devices.data]
profile = "ssd-sata-dc"
[placements.a]
log = "log"
default = "data"
"""


def start(tmp_path: Path, seconds: float, repeats: int, *options: str) -> subprocess.Popen[bytes]:
    file = tmp_path / "crash.toml"
    file.write_text(STUDY.format(seconds=seconds, repeats=repeats), "utf-8")
    command = [
        sys.executable,
        "-m",
        "tierwise",
        "study",
        "run",
        str(file),
        "--output",
        str(tmp_path / "results"),
    ]
    command += options
    return subprocess.Popen(command, stdout=(tmp_path / "said").open("wb"), stderr=subprocess.STDOUT)


def users_of(run_dir: Path) -> list[str]:
    """Command lines of processes that were started with this ledger."""
    token = f"TIERWISE_RUN_DIR={run_dir}".encode()
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token in (process / "environ").read_bytes().split(b"\0"):
                users.append((process / "cmdline").read_text())
        except OSError:
            continue
    return users


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_study_leaves_nothing(run_dir: Path, tmp_path: Path, how: signal.Signals, seed: int) -> None:
    process = start(tmp_path, seconds=60, repeats=1)
    time.sleep(random.Random(f"{how}{seed}").uniform(0.5, LATEST_MOMENT_S))
    process.send_signal(how)
    assert process.wait(timeout=120) != 0
    clean.clean()
    assert not users_of(run_dir)
    assert not list(run_dir.glob("*.json"))


def kill_server(disk: DiskStats) -> None:
    subprocess.run(["kill", "-9", str(disk.server_pid)], check=True)


def fail_device(disk: DiskStats) -> None:
    EmulatedDisk.find(disk.name).fail(after_requests=20)


@pytest.mark.parametrize("strike", [kill_server, fail_device])
def test_a_dead_device_fails_its_run_and_resuming_completes_the_study(
    run_dir: Path, tmp_path: Path, strike: Callable[[DiskStats], None]
) -> None:
    process = start(tmp_path, seconds=4, repeats=2)
    strike(await_measuring(tmp_path))
    status = process.wait(timeout=300)
    results = runner.finished_runs_in(tmp_path / "results" / "crash" / runner.LATEST)
    assert results[0].status == "failed" and results[0].problems
    # A disturbed machine serves requests late, which spoils a run but does not end it.
    assert [result.status for result in results[1:]] in (["ok"], ["invalid"]), results
    assert status == (0 if results[1].status == "ok" else 2)
    assert not users_of(run_dir)
    if strike is fail_device:
        resume(tmp_path, results)


def resume(tmp_path: Path, before: list[RunResult]) -> None:
    """The failed run is run again on a fresh device, and its old record set aside."""
    status = start(tmp_path, 4, 2, "--resume").wait(timeout=300)
    directory = tmp_path / "results" / "crash" / runner.LATEST
    after = runner.finished_runs_in(directory)
    assert len(after) == 2 and "failed" not in {result.status for result in after}, after
    assert status == (0 if any(result.status == "ok" for result in after) else 2)
    assert after[0] == before[1] and after[1].run_id == before[0].run_id
    assert read_results(directory / runner.FAILED_FILE) == [before[0]]


def await_measuring(tmp_path: Path) -> DiskStats:
    """The log's disk, once something writes to it at the model's pace."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for disk in all_disks()[0]:
            # Only what is answered at the model's pace can be late; tables are loaded without.
            if disk.name.endswith("-log") and disk.partitions["log"].writes and disk.deadline_overrun:
                return disk
        time.sleep(0.1)
    raise AssertionError(f"the study never got to its measured phase: {(tmp_path / 'said').read_text()}")
