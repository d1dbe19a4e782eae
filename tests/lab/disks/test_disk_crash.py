"""An emulated disk under a writer at full speed is killed at random moments; ``clean`` leaves nothing."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.disk_traces import traces
from tierwise.host import ledger
from tierwise.host.clean import clean
from tierwise.host.disk.disk_server import disk_server_pids
from tierwise.host.disk.disk_teardown import disk_config_file, disk_directory

MOMENTS = 20
MOMENTS_OF_CUTS = 8
LAST_MOMENT_S = 2.5
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]

# It ends with its disk: a file below the mount point would be nobody's to remove. So it makes files in the
# directory that it has looked at, which stays the disk's if that is unmounted meanwhile.
WRITER = """
import os, sys
for number in range(10**9):
    directory = os.open(sys.argv[1], os.O_RDONLY)
    if os.fstat(directory).st_dev == os.stat(sys.argv[1] + "/..").st_dev:
        break
    file = os.open(str(number % 50), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=directory)
    os.close(directory)
    os.write(file, os.urandom(100_000))
    os.fsync(file)
    os.close(file)
"""

# After a power cut its files are in error; it opens the directory again, and waits until a disk is mounted.
STUBBORN_WRITER = """
import os, sys, time
while True:
    directory = os.open(sys.argv[1], os.O_RDONLY)
    try:
        for number in range(10**9):
            if os.fstat(directory).st_dev == os.stat(sys.argv[1] + "/..").st_dev:
                break
            file = os.open(str(number % 50), os.O_WRONLY | os.O_CREAT, dir_fd=directory)
            try:
                os.write(file, os.urandom(100_000))
                os.fsync(file)
            finally:
                os.close(file)
    except OSError:
        pass
    os.close(directory)
    time.sleep(0.01)
"""

CALLER = """
import sys, time
from pathlib import Path
from tierwise.device_models import profiles
from tierwise.host import processes
from tierwise.host.disk.disk import EmulatedDisk, Partition

name, mount, profile, writer, cuts, transport = sys.argv[1:]
parts = [Partition("log", 64 << 20), Partition("data", 64 << 20)]
made = profiles.load_profile(profile)
with EmulatedDisk.up(name, made, parts, Path(mount), transport=transport or None) as disk:
    writers = []
    try:
        for point in disk.mounts.values():
            writers.append(processes.start("writer", [sys.executable, "-c", writer, str(point)]))
        for seed in range(int(cuts)):
            disk.cut(keep_random=True, seed=seed)
        time.sleep(1)
    finally:
        for process in writers:
            process.kill()
"""

DEFECT = re.compile(r"^(Attribute|Import|ModuleNotFound|Name|Type)Error", re.M)
"""What a script ends with that does not do what it is for."""


@pytest.fixture(autouse=True)
def own_ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="tw-") as directory:
        monkeypatch.setenv("TIERWISE_RUN_DIR", directory)
        yield


def strike(name: str, caller: subprocess.Popen[bytes], dice: random.Random) -> str:
    """Send a random signal to the server, if it is there, or to the caller; say which."""
    victim, number = dice.choice(["server", "caller"]), dice.choice(SIGNALS)
    servers = disk_server_pids(disk_config_file(disk_directory(name)))
    pid = servers[0] if victim == "server" and servers else caller.pid
    if pid != caller.pid or caller.poll() is None:
        os.kill(pid, number)
    return f"{number.name} to the {'caller' if pid == caller.pid else 'server'}"


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_nothing_is_left_after_a_crash(moment: int, tmp_path: Path) -> None:
    dice = random.Random(moment)
    profile = dice.choice(["hdd-7k2", "ssd-sata-dc", "zero"])
    # Every second one without what only newer kernels have.
    arguments = [profile, WRITER, "0", ["", "fuse"][moment % 2]]
    crash(f"crash-{os.getpid()}-{moment}", tmp_path / "mount", dice, arguments)


@pytest.mark.parametrize("moment", range(MOMENTS_OF_CUTS))
def test_nothing_is_left_after_a_crash_amid_power_cuts(moment: int, tmp_path: Path) -> None:
    dice = random.Random(1000 + moment)
    arguments = ["hdd-7k2-sata-2009", STUBBORN_WRITER, "1000", ["", "fuse"][moment % 2]]
    crash(f"crash-cut-{os.getpid()}-{moment}", tmp_path / "mount", dice, arguments)


def crash(name: str, mount_dir: Path, dice: random.Random, arguments: list[str]) -> None:
    """Kill the caller or the server of a new disk at a random moment; nothing may be left after ``clean``."""
    command = [sys.executable, "-c", CALLER, name, str(mount_dir), *arguments]
    errors = mount_dir.with_name("errors")
    with errors.open("wb") as file:
        caller = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
    after_s = dice.uniform(0.1, LAST_MOMENT_S)
    time.sleep(after_s)
    what = f"{strike(name, caller, dice)} after {after_s:.2f} s on {arguments[0]}"
    caller.wait(120)
    assert not DEFECT.search(errors.read_text()), errors.read_text()
    clean()
    assert traces(name, mount_dir) == [], what
    assert ledger.entries() == [], what
    assert not _processes_with(str(mount_dir)), what


def _processes_with(argument: str) -> list[int]:
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if argument.encode() in (process / "cmdline").read_bytes():
                processes.append(int(process.name))
        except OSError:
            continue
    return [pid for pid in processes if ledger.ProcessIdentity.of(pid)]
