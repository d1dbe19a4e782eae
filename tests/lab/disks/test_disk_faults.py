"""Power cuts, death, stalls and unreadable sectors of an emulated disk, seen by its users."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.disk_files import append, error_of, flushed_file, read_sector, write_without_flush
from support.disk_traces import NAME, traces
from support.engine_contract import until
from tierwise.device_models import profiles
from tierwise.host import block_devices, mounts
from tierwise.host.disk.disk import DiskFaults, EmulatedDisk, Partition
from tierwise.host.disk.disk_teardown import disk_directory
from tierwise.host.disk.partitions import reattach_partitions, release_partitions
from tierwise.model.errors import TierwiseError

MIB = 1 << 20
VOLATILE = "hdd-7k2-sata-2009"
TWO = [Partition("log", 64 * MIB), Partition("data", 128 * MIB)]


@pytest.fixture
def mount_dir(tmp_path: Path) -> Path:
    return tmp_path / "mount"


@pytest.fixture
def disk(mount_dir: Path) -> Iterator[EmulatedDisk]:
    with EmulatedDisk.up(NAME, profiles.load_profile(VOLATILE), TWO, mount_dir) as up:
        yield up
    assert traces(NAME, mount_dir) == []


def test_a_cut_takes_what_was_not_flushed_and_nothing_else(disk: EmulatedDisk) -> None:
    descriptor = flushed_file(disk.mounts["data"], b"a" * 65536)
    before = disk.stats().partitions["data"].device
    write_without_flush(descriptor, b"b" * 32768, 0)
    assert disk.stats().unflushed_bytes >= 32768
    report = disk.cut()
    assert report.unflushed_sectors >= 64 and report.kept_sectors == report.torn_writes == 0
    assert (disk.mounts["data"] / "file").read_bytes() == b"a" * 65536
    assert disk.stats().unflushed_bytes == 0
    assert disk.stats().partitions["data"].device != before, "who has a file open keeps the old device"
    os.close(descriptor)


def test_a_random_subset_keeps_whole_sectors_of_old_or_new(disk: EmulatedDisk) -> None:
    sectors_of_new = []
    for seed in range(6):
        descriptor = flushed_file(disk.mounts["data"], b"a" * 65536)
        for page in range(16):
            write_without_flush(descriptor, b"b" * 4096, page * 4096)
        os.close(descriptor)
        report = disk.cut(keep_random=True, seed=seed)
        assert report.kept_sectors + report.lost_sectors == report.unflushed_sectors >= 128
        content = (disk.mounts["data"] / "file").read_bytes()
        sectors = [content[at : at + 512] for at in range(0, len(content), 512)]
        assert set(sectors) <= {b"a" * 512, b"b" * 512}
        sectors_of_new.append(sum(sector[:1] == b"b" for sector in sectors))
    # Half of 128 on the average; 0 or 128 six times would be no subset.
    assert any(0 < new < 128 for new in sectors_of_new), sectors_of_new


def test_who_had_a_file_open_gets_errors_for_good(disk: EmulatedDisk) -> None:
    descriptor = flushed_file(disk.mounts["data"], b"a" * 4096)
    disk.cut()
    # Without a loop device, the file system knows at once.
    assert error_of(lambda: os.pwrite(descriptor, b"b" * 4096, 0)) in (None, errno.EIO)
    assert error_of(lambda: os.fsync(descriptor)) == errno.EIO
    (disk.mounts["data"] / "new").write_bytes(b"c")
    assert (disk.mounts["data"] / "file").read_bytes() == b"a" * 4096
    os.close(descriptor)


def test_a_cut_that_ended_half_way_is_finished_by_the_next(disk: EmulatedDisk) -> None:
    os.close(flushed_file(disk.mounts["data"], b"a" * 4096))
    for steps in range(2):
        disk.cut(remount=False)
        release_partitions(disk_directory(NAME), disk.entry.facts["partitions"])
        if steps:
            reattach_partitions(
                disk_directory(NAME), disk.entry.facts["partitions"], block_devices.ReportedCaches(True, True)
            )
        assert not disk.mounts["data"].is_mount()
        disk.cut()
        assert disk.mounts["data"].is_mount() and disk.mounts["log"].is_mount()
    # And the fixture takes down one that was not finished.
    disk.cut(remount=False)
    release_partitions(disk_directory(NAME), disk.entry.facts["partitions"])


def test_what_is_mounted_over_a_disk_stays(disk: EmulatedDisk) -> None:
    point = disk.mounts["data"]
    mounts.mount("none", point, "tmpfs")
    (point / "mine").touch()
    for change in (disk.cut, disk.down):
        with pytest.raises(TierwiseError, match=rf"{point}: none \(tmpfs\) is mounted over /dev/.*: umount "):
            change()
        assert (point / "mine").exists()
    mounts.unmount(point)


def test_a_mount_point_that_is_gone_is_named_and_a_further_cut_mounts_there(disk: EmulatedDisk) -> None:
    point = disk.mounts["data"]
    disk.cut(remount=False)
    release_partitions(disk_directory(NAME), disk.entry.facts["partitions"])
    point.rmdir()
    with pytest.raises(TierwiseError, match=rf"{point}: No such file or directory: mkdir -p {point}"):
        disk.cut()
    point.mkdir()
    disk.cut()
    assert point.is_mount()


def test_who_keeps_a_cut_disk_from_going_down_is_named(
    disk: EmulatedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = flushed_file(disk.mounts["data"], b"a" * 4096)
    disk.cut()
    if disk.stats().transport == "ublk":
        pytest.skip("the device is gone, whoever has a file of it open")
    monkeypatch.setattr(block_devices, "_GONE_AFTER_S", 0.2)
    with pytest.raises(TierwiseError, match=rf"loop\d+ in use by {os.getpid()} \("):
        disk.down()
    os.close(descriptor)


def test_without_a_volatile_cache_what_was_completed_stays(mount_dir: Path) -> None:
    with EmulatedDisk.up(NAME, profiles.load_profile("hdd-7k2"), TWO, mount_dir) as disk:
        descriptor = flushed_file(disk.mounts["data"], b"a" * 8192)
        write_without_flush(descriptor, b"b" * 8192, 0)
        os.close(descriptor)
        assert disk.cut().lost_sectors == 0
        assert (disk.mounts["data"] / "file").read_bytes() == b"b" * 8192


def test_a_lying_disk_loses_what_it_said_was_flushed(mount_dir: Path) -> None:
    with EmulatedDisk.up(
        NAME, profiles.load_profile(VOLATILE), TWO, mount_dir, lies_about_flush=True
    ) as disk:
        time.sleep(2.1)
        disk.reset_stats()
        append(disk.mounts["data"] / "log", 20)
        flushes = disk.stats().partitions["data"].flush_latency
        assert flushes is not None and flushes.p50_us < 4_000, "a flush that is not done takes no revolution"
        assert disk.cut().lost_sectors >= 20
        assert not (disk.mounts["data"] / "log").exists()


def test_a_cut_fails_what_is_inside_and_a_slow_disk_is_slow(disk: EmulatedDisk) -> None:
    path = disk.mounts["log"] / "wal"
    normal_ms = append(path, 20)
    disk.slow(20, 3)
    start = time.monotonic()
    slow_ms = append(path, 3)
    # A third of the factor: the phase may end before the last of the three does.
    assert slow_ms > 6 * normal_ms and time.monotonic() - start > 0.3, (slow_ms, normal_ms)
    until(lambda: append(path, 20) < 2 * normal_ms)  # the phase ends by itself
    disk.slow(1e6, 60)
    writer = subprocess.Popen(
        [sys.executable, "-c", "import os,sys; os.fsync(os.open(sys.argv[1], os.O_RDWR))", str(path)],
        stderr=subprocess.DEVNULL,
    )
    with path.open("r+b") as file:
        file.write(b"x")
    until(lambda: disk.stats().partitions["log"].writes)
    time.sleep(0.2)
    assert writer.poll() is None, "the disk stalls"
    assert disk.cut(remount=False).failed_requests > 0
    assert writer.wait(60) != 0
    disk.slow(1, 0)
    disk.remount()
    assert path.read_bytes()


@pytest.mark.parametrize("after", [{"after_s": 0.3}, {"after_requests": 5}], ids=str)
def test_a_dead_disk_gives_errors_until_it_is_down(disk: EmulatedDisk, after: dict[str, float]) -> None:
    descriptor = flushed_file(disk.mounts["data"], b"a" * 4096)
    disk.fail(**after)  # type: ignore[arg-type]
    deadline = time.monotonic() + 60
    error = None
    while error is None and time.monotonic() < deadline:
        os.pwrite(descriptor, os.urandom(4096), 0)
        error = error_of(lambda: os.fsync(descriptor))
    assert error == errno.EIO
    assert error_of(lambda: read_sector(disk, "log", 2048)) == errno.EIO
    assert disk.stats().errors > 0
    os.close(descriptor)


def test_a_cut_of_a_dead_disk_says_that_it_is_dead(disk: EmulatedDisk) -> None:
    disk.fail()
    with pytest.raises(TierwiseError, match=rf"disk '{NAME}' has failed.*: tierwise disk down {NAME}"):
        disk.cut()


def test_after_a_cut_each_file_system_that_can_be_mounted_is(disk: EmulatedDisk) -> None:
    disk.make_unreadable(0, 15, "log")
    with pytest.raises(TierwiseError, match="cannot be read there"):
        disk.cut()
    assert disk.mounts["data"].is_mount() and not disk.mounts["log"].is_mount()


def test_an_unreadable_sector_is_read_again_after_it_was_written(disk: EmulatedDisk) -> None:
    disk.make_unreadable(100_001, 100_002, "data")
    assert error_of(lambda: read_sector(disk, "data", 100_000)) == errno.EIO
    assert error_of(lambda: read_sector(disk, "log", 100_000)) is None
    read_sector(disk, "data", 100_008)
    descriptor = os.open(disk.stats().partitions["data"].device, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as buffer:
        buffer.write(b"z" * 4096)
        os.pwritev(descriptor, [buffer], 100_000 * 512)
    os.close(descriptor)
    assert read_sector(disk, "data", 100_000) == b"z" * 4096


def test_faults_from_the_start(mount_dir: Path) -> None:
    faults = DiskFaults(
        fail_after_requests=10_000, slow_factor=2, slow_for_s=1, unreadable=[range(200_000, 200_008)]
    )
    parts = [Partition("data", 128 * MIB)]
    profile = profiles.load_profile("ssd-sata-dc")
    with EmulatedDisk.up(NAME, profile, parts, mount_dir, precondition="random", faults=faults) as disk:
        assert error_of(lambda: read_sector(disk, "data", 200_000)) == errno.EIO
        assert disk.stats().errors == 1


@pytest.mark.parametrize("kind", ["hdd", "ssd", "ram", "array", "volume"])
def test_every_kind_of_device_is_served_preloaded_and_cut(mount_dir: Path, kind: str) -> None:
    name = next(name for name in profiles.profile_names() if profiles.load_profile(name).kind == kind)
    parts = [Partition("data", 128 * MIB)]
    with EmulatedDisk.up(
        NAME, profiles.load_profile(name), parts, mount_dir, precondition="sequential"
    ) as disk:
        disk.set_timing(False)
        (mount_dir / "data" / "loaded").write_bytes(b"l" * MIB)
        os.sync()
        disk.set_timing(True)
        disk.reset_stats()
        os.close(flushed_file(mount_dir / "data", b"a" * 65536))
        os.fsync(directory := os.open(mount_dir / "data", os.O_RDONLY))
        os.close(directory)
        latency = disk.stats().partitions["data"].write_latency
        assert latency is not None and latency.count > 0
        assert disk.stats().errors == 0
        disk.cut(keep_random=True)
        assert (mount_dir / "data" / "loaded").read_bytes() == b"l" * MIB
        assert (mount_dir / "data" / "file").read_bytes() == b"a" * 65536
