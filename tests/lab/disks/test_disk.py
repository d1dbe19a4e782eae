"""Emulated disks: what they do while up, and that nothing is left when down."""

from __future__ import annotations

import fcntl
import itertools
import json
import mmap
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from support.disk_files import append
from support.disk_traces import NAME, traces
from support.engine_contract import until
from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.host import block_devices, mounts, processes
from tierwise.host.disk import disk_teardown
from tierwise.host.disk.disk import EmulatedDisk, Partition, all_disks
from tierwise.host.disk.disk_config import Transport, require_empty_directory
from tierwise.model.errors import TierwiseError

MIB = 1 << 20
TWO = [Partition("log", 64 * MIB), Partition("data", 128 * MIB)]


@pytest.fixture
def mount_dir(tmp_path: Path) -> Path:
    return tmp_path / "mount"


SWITCH = disk_teardown._URING_SWITCH


@pytest.fixture(params=get_args(Transport))
def disk(mount_dir: Path, request: pytest.FixtureRequest) -> Iterator[EmulatedDisk]:
    if request.param == "fuse-io-uring" and not SWITCH.exists():
        pytest.skip("this kernel has no FUSE over io_uring")
    if request.param == "ublk" and not Path("/dev/ublk-control").exists():
        pytest.skip("this kernel has no ublk: make compat runs it")
    switch = SWITCH.read_text() if SWITCH.exists() else ""
    with EmulatedDisk.up(
        NAME, profiles.load_profile("hdd-7k2"), TWO, mount_dir, transport=request.param
    ) as up:
        assert up.stats().transport == request.param
        assert not switch or SWITCH.read_text() == switch
        yield up
    assert traces(NAME, mount_dir) == []


def test_one_writer_commits_once_a_revolution(disk: EmulatedDisk) -> None:
    """A sector passes the head at one angle: who comes late ends late or turns later, all others there."""
    revolution_s = 60 / 7200
    ends_s = ends_of_commits(disk.mounts["log"] / "wal", 240)
    apart_s = [end - before for before, end in itertools.pairwise(ends_s)]
    quarter_s, median_s, _ = statistics.quantiles(apart_s)
    assert median_s > 0.95 * revolution_s and quarter_s < 1.5 * revolution_s, sorted(apart_s)
    # A revolution a thousandth longer would spread them over a quarter of the circle; any angle has 4 %.
    assert share_at_one_angle([end / revolution_s for end in ends_s]) > 0.15, sorted(apart_s)


def ends_of_commits(path: Path, count: int) -> list[float]:
    """When each write to the same sectors with its flush was done, in s."""
    path.write_bytes(bytes(8192))
    descriptor = os.open(path, os.O_WRONLY)
    os.fsync(descriptor)
    ends_s = []
    for _ in range(count):
        os.pwrite(descriptor, b"x" * 8192, 0)
        os.fdatasync(descriptor)
        ends_s.append(time.monotonic())
    os.close(descriptor)
    return ends_s


def share_at_one_angle(turns: list[float]) -> float:
    """The largest share of moments, given in revolutions, within 2 % of a revolution of one of them."""
    near = [sum(abs((turn - start + 0.5) % 1 - 0.5) < 0.02 for turn in turns) for start in turns]
    return max(near) / len(turns)


def test_each_partition_counts_its_own(disk: EmulatedDisk) -> None:
    disk.reset_stats()
    append(disk.mounts["log"] / "wal", 10)
    stats = disk.stats()
    log, data = stats.partitions["log"], stats.partitions["data"]
    assert log.writes >= 10 and log.write_bytes >= 10 * 8192
    assert data.writes == data.flushes == 0
    assert log.write_latency is not None and log.write_latency.count == log.writes
    assert 0 < log.busy_s <= stats.elapsed_s
    assert stats.deadline_overrun is not None and stats.deadline_overrun.count >= 10
    disk.reset_stats()
    assert disk.stats().partitions["log"].writes == 0


def test_bytes_come_back_from_the_device(disk: EmulatedDisk) -> None:
    content = os.urandom(3 * MIB)
    path = disk.mounts["data"] / "file"
    disk.set_timing(False)
    path.write_bytes(content)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    disk.reset_stats()
    assert path.read_bytes() == content
    assert disk.stats().partitions["data"].read_bytes >= len(content)


def test_an_older_kernel_mounts_without_the_option_that_it_lacks(
    mount_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mounts._MOUNT_OPTIONS, "ext4", "not_known_yet")
    monkeypatch.setattr(mounts, "_UNKNOWN_BEFORE_5_13", "not_known_yet")
    with EmulatedDisk.up(NAME, profiles.load_profile("ssd-nvme-dc"), TWO, mount_dir) as up:
        assert all(mounts.mount_at(point) for point in up.mounts.values())


def test_without_timing_nothing_waits_and_with_it_everything_does(disk: EmulatedDisk) -> None:
    disk.set_timing(False)
    fast = append(disk.mounts["log"] / "fast", 50, min)  # the others waited for a processor
    disk.set_timing(True)
    slow = append(disk.mounts["log"] / "slow", 10)
    assert slow > 5, slow
    assert fast < slow / 3, (fast, slow)


def test_a_deep_queue_reaches_the_model_whole(disk: EmulatedDisk) -> None:
    descriptor = os.open(disk.stats().partitions["data"].device, os.O_RDONLY | os.O_DIRECT)

    def read(number: int) -> None:
        with mmap.mmap(-1, 4096) as buffer:
            for turn in range(8):
                os.preadv(descriptor, [buffer], (turn * 32 + number) * 512 * 1024)

    with ThreadPoolExecutor(32) as readers:
        list(readers.map(read, range(32)))
    os.close(descriptor)
    assert disk.stats().queue_depth_max >= 32  # and what the file system does meanwhile


def test_discards_arrive_and_give_memory_back(disk: EmulatedDisk) -> None:
    disk.set_timing(False)
    path = disk.mounts["data"] / "file"
    path.write_bytes(os.urandom(32 * MIB))
    os.sync()
    before = _resident_bytes(disk.stats().server_pid)
    path.unlink()
    os.sync()
    mounts.run_system_command("fstrim", str(disk.mounts["data"]))
    assert disk.stats().partitions["data"].discards > 0
    assert before - _resident_bytes(disk.stats().server_pid) > 24 * MIB


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_queue_is_set_each_time(disk: EmulatedDisk) -> None:
    for part in disk.stats().partitions.values():
        queue = Path("/sys/block") / Path(part.device).name / "queue"
        assert (queue / "write_cache").read_text().strip() == "write through"
        assert (queue / "max_sectors_kb").read_text().strip() == "1024"
        assert "[none]" in (queue / "scheduler").read_text()


@pytest.mark.parametrize(("name", "flushed"), [("hdd-7k2", False), ("hdd-7k2-sata-2009", True)])
def test_only_a_volatile_cache_is_flushed_before_and_after_a_cut(
    name: str, flushed: bool, mount_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    ioctl = fcntl.ioctl

    def watched(descriptor: int, request: int, *arguments: Any) -> Any:
        if request == block_devices._LOOP_CLR_FD:
            number = os.fstat(descriptor).st_rdev
            queue = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue")
            left.append((queue / "write_cache").read_text().strip())
        return ioctl(descriptor, request, *arguments)

    monkeypatch.setattr(fcntl, "ioctl", watched)
    with EmulatedDisk.up(NAME, profiles.load_profile(name), TWO, mount_dir) as disk:
        for _ in range(2):
            disk.reset_stats()
            append(disk.mounts["log"] / "wal", 10)
            log = disk.stats().partitions["log"]
            assert log.writes >= 10
            assert log.flushes >= 10 if flushed else log.flushes == 0
            disk.cut()
        transport = disk.stats().transport
        os.kill(disk.stats().server_pid, 9)
    # The next user of a loop device inherits the setting, and must lose no flush.
    assert transport == "ublk" or (len(left) >= 6 and set(left) == {"write back"})
    assert traces(NAME, mount_dir) == []


def test_no_variable_of_the_caller_reaches_the_server(
    mount_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERWISE_DSN", "postgresql://u:password@h/d")
    with EmulatedDisk.up(NAME, profiles.load_profile("hdd-7k2"), TWO, mount_dir) as disk:
        variables = Path(f"/proc/{disk.stats().server_pid}/environ").read_text().strip("\0").split("\0")
    assert {variable.partition("=")[0] for variable in variables} == {"PATH", "HOME", "LC_ALL"}


def test_the_server_has_memory_groups_and_priorities_of_its_own(disk: EmulatedDisk) -> None:
    stats = disk.stats()
    assert stats.warnings == []
    groups = Path(f"/proc/{stats.server_pid}/cgroup").read_text()
    assert f"/tierwise/{NAME}" in groups
    assert "VmLck:\t       0 kB" not in Path(f"/proc/{stats.server_pid}/status").read_text()


def test_disks_are_listed_and_found(disk: EmulatedDisk) -> None:
    assert NAME in [stats.name for stats in all_disks()[0]]
    assert EmulatedDisk.find(NAME).mounts == disk.mounts
    with pytest.raises(TierwiseError, match="no disk 'nothing'"):
        EmulatedDisk.find("nothing")


def test_going_down_twice_is_no_error_and_a_dead_server_none_either(mount_dir: Path) -> None:
    disk = EmulatedDisk.up(NAME, profiles.load_profile("ram"), TWO, mount_dir)
    os.kill(disk.stats().server_pid, 9)
    disk.down()
    disk.down()
    assert traces(NAME, mount_dir) == []


def test_a_disk_in_use_stays_up_and_says_who_uses_it(disk: EmulatedDisk) -> None:
    with (disk.mounts["log"] / "open").open("w"):
        with pytest.raises(TierwiseError, match=rf"in use by {os.getpid()} \(") as caught:
            disk.down()
        assert caught.value.fix.startswith("end what uses it")


READS = """
import mmap, os, sys, time
descriptor, buffer = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
end, long = time.monotonic() + 2, 0
while (start := time.monotonic()) < end:
    os.preadv(descriptor, [buffer], 0)
    long += time.monotonic() - start > 0.2
print(long)
"""
FLUSHES = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while True:
    os.pwrite(descriptor, b"x", 0)
    os.fsync(descriptor)
"""


def test_a_read_does_not_wait_for_a_flush_that_the_device_does_beside_it(
    mount_dir: Path, tmp_path: Path
) -> None:
    slow = tmp_path / "slow-flush.toml"
    cached = profiles.load_profile("ssd-nvme-consumer").text
    slow.write_text(cached.replace("flush_us = 20\n", "flush_us = 400_000\n"))
    with EmulatedDisk.up(NAME, profiles.load_profile(str(slow)), TWO, mount_dir) as disk:
        flusher = processes.start("flusher", [sys.executable, "-c", FLUSHES, disk.mounts["data"] / "file"])
        try:
            until(lambda: disk.stats().partitions["data"].flushes)
            loop_device = disk.stats().partitions["data"].device
            reader = processes.start(
                "reader", [sys.executable, "-c", READS, loop_device], log=tmp_path / "longest"
            )
            assert reader.wait(60) == 0
        finally:
            flusher.kill()
        assert disk.stats().partitions["data"].flushes >= 3
    # If reads waited for flushes, five in a row would. On a busy machine, the kernel lets a single one wait.
    assert int((tmp_path / "longest").read_text()) <= 1


@pytest.mark.skipif(shutil.which("mkfs.xfs", path="/usr/sbin:/sbin") is None, reason="mkfs.xfs is missing")
def test_xfs(mount_dir: Path) -> None:
    parts = [Partition("data", 320 * MIB, "xfs")]
    with EmulatedDisk.up(NAME, profiles.load_profile("ram"), parts, mount_dir) as disk:
        mounted = mounts.mount_at(disk.mounts["data"])
        assert mounted is not None and mounted.file_system == "xfs"
    assert traces(NAME, mount_dir) == []


def test_what_this_machine_attains_is_measured_once_for_a_flash_device(
    disk: EmulatedDisk, tmp_path: Path
) -> None:
    assert disk.stats().attainable == []  # a hard disk is far slower than its path
    nvme = profiles.load_profile("ssd-nvme-dc")
    with EmulatedDisk.up(f"{NAME}-flash", nvme, [Partition("log", 64 * MIB)], tmp_path / "flash") as flash:
        counted = flash.stats()
        rates = counted.attainable
        assert [(rate.op, rate.depth) for rate in rates] == list(
            itertools.product(("read", "write"), (1, 2, 4, 8, 16, 32))
        )
        assert all(100 < rate.here_per_s <= rate.model_per_s for rate in rates)
        assert counted.partitions["log"].reads == 0
        append(flash.mounts["log"] / "file", 200)
        share = flash.stats().path_share
        assert share is not None and 0 <= share < 1


def test_command_line(mount_dir: Path) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["disk", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("up", NAME, "--profile", "ssd-sata-dc", "--size", "64M", "--mount", str(mount_dir), "--seed", "7")
    try:
        (mount_dir / "file").write_bytes(b"x")
        os.sync()
        assert json.loads(run("stats", NAME, "--format", "json"))["partitions"]["disk"]["writes"] > 0
        assert NAME in [disk["name"] for disk in json.loads(run("list", "--format", "json"))["disks"]]
        assert NAME in run("list")
        assert "partitions.disk.writes" in run("stats", NAME)
    finally:
        run("down", NAME)
    assert traces(NAME, mount_dir) == []


def test_links_lead_to_the_mount_and_to_the_run_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "link" / "run"))
    parts = [Partition("disk", 64 * MIB)]
    point = tmp_path / "real" / "mount"
    with EmulatedDisk.up(
        NAME, profiles.load_profile("ram"), parts, tmp_path / "link" / "mount", path_us=0
    ) as disk:
        with pytest.raises(TierwiseError, match="something is mounted there"):
            require_empty_directory(tmp_path / "link" / "mount")
        disk.cut()
        assert [mount.point for mount in mounts.mounts()].count(point) == 1
    assert not [mount for mount in mounts.mounts() if mount.point.is_relative_to(tmp_path)]
    assert not block_devices.loop_devices_below(tmp_path)
    assert traces(NAME, point) == []


def test_a_disk_whose_cut_nobody_reads_is_mounted_again(
    mount_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise BrokenPipeError

    parts = [Partition("disk", 64 * MIB)]
    with EmulatedDisk.up(NAME, profiles.load_profile("ram"), parts, mount_dir, path_us=0):
        monkeypatch.setattr("tierwise.cli.disk.print_result", broken)
        CliRunner().invoke(app, ["disk", "cut", NAME])
        (mount_dir / "file").write_bytes(b"x")
    assert traces(NAME, mount_dir) == []
