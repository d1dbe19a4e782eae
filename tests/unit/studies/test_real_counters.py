"""Real devices, counted by the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tierwise.lab.studies.runner.real_devices import DiskCounters, real_directory
from tierwise.model.errors import TierwiseError

BEFORE = "100 5 800 40 200 9 1600 90 0 120 130 7 0 0 0 11 3"
AFTER = "110 5 960 45 230 9 2112 190 0 320 330 8 0 0 0 15 4"


def test_counts_what_happened_between_two_readings() -> None:
    io = DiskCounters.parse(AFTER).since(DiskCounters.parse(BEFORE), "own", 2.0)
    assert (io.reads, io.writes, io.flushes, io.discards) == (10, 30, 4, 1)
    assert (io.read_bytes, io.write_bytes) == (160 * 512, 512 * 512)
    assert io.busy_s == pytest.approx(0.2)
    assert io.queue_depth_mean == pytest.approx(0.1)


def test_times_of_the_kernel_wrap_after_49_days() -> None:
    words = BEFORE.split()
    words[9] = words[10] = str((1 << 32) - 100)
    io = DiskCounters.parse(AFTER).since(DiskCounters.parse(" ".join(words)), "own", 2.0)
    assert io.busy_s == pytest.approx(0.42)
    assert io.queue_depth_mean == pytest.approx(0.215)


def test_old_kernels_count_no_flushes() -> None:
    eleven_fields = " ".join(BEFORE.split()[:11])
    assert DiskCounters.parse(eleven_fields).flushes == 0


def test_writing_shows(tmp_path: Path) -> None:
    directory = real_directory("own", str(tmp_path))
    before = DiskCounters.under(directory)
    if before is None:
        pytest.skip("the temporary directory has no block device under it")
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    after = DiskCounters.under(directory)
    assert after is not None
    assert after.since(before, "own", 1.0).write_bytes >= 1 << 20


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"devices\.own\.path"):
        real_directory("own", str(tmp_path / "none"))
