"""Limits of control groups, as the kernel shows them in files of both versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tierwise.capture import control_group, record
from tierwise.capture.control_group import groups_of_process, io_limit_warning, throttled_memory_bytes
from tierwise.capture.target import RecordingTarget, load_rules

_OWN = os.getpid()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Number of the disk below a partition on which this process has a file open."""
    number = (tmp_path.stat()).st_dev
    partition = tmp_path / "devices" / "disk" / "part"
    _write(partition / "dev", f"{os.major(number)}:{os.minor(number)}\n")
    _write(partition / "partition", "1\n")
    _write(partition.parent / "dev", "8:0\n")
    folder = tmp_path / "numbers"
    folder.mkdir()
    (folder / f"{os.major(number)}:{os.minor(number)}").symlink_to(partition)
    monkeypatch.setattr(control_group, "_DEVICES", folder)
    monkeypatch.chdir(tmp_path)
    return "8:0"


def test_the_groups_of_a_process_are_those_of_both_versions_and_their_ancestors(tmp_path: Path) -> None:
    _write(tmp_path / "proc/7/cgroup", "7:blkio:/db\n4:memory:/other\n0::/system.slice/pg.service\n")
    groups = groups_of_process(7, tmp_path / "cgroup", tmp_path / "proc")
    names = [str(group.relative_to(tmp_path / "cgroup")) for group in groups]
    for name in (".", "system.slice", "system.slice/pg.service", "unified/system.slice", "blkio/db", "blkio"):
        assert name in names
    assert not [name for name in names if "other" in name]
    assert groups_of_process(8, tmp_path / "cgroup", tmp_path / "proc") == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("io.max", "{} rbps=2097152 wbps=max riops=max wiops=120\n8:999 wiops=1\n"),
        ("blkio.throttle.write_iops_device", "8:999 1\n{} 120\n"),
    ],
)
def test_a_limit_of_io_of_a_used_device_is_a_warning(
    tmp_path: Path, device: str, file: str, text: str
) -> None:
    _write(tmp_path / "slice" / file, text.format(device))
    (warning,) = io_limit_warning([_OWN], [tmp_path / "slice" / "db", tmp_path / "slice"])
    assert "120 writes a second" in warning
    assert ("2.10 MB of reads a second" in warning) == (file == "io.max")


@pytest.mark.parametrize("text", ["8:999 wiops=1\n", "{} rbps=max wbps=max riops=max wiops=max\n", "", "?"])
def test_no_limit_of_io_and_one_of_another_device_are_none(tmp_path: Path, device: str, text: str) -> None:
    _write(tmp_path / "io.max", text.format(device))
    assert io_limit_warning([_OWN], [tmp_path]) == []


def test_the_memory_of_a_recording_is_at_most_that_of_memory_high(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a/memory.high", "max\n")
    assert throttled_memory_bytes([tmp_path / "a", tmp_path]) is None
    _write(tmp_path / "memory.high", "67108864\n")
    assert throttled_memory_bytes([tmp_path / "a", tmp_path]) == 64 << 20
    monkeypatch.setattr(record, "groups_of_process", lambda _: [tmp_path])
    about = _about()
    assert about["machine"]["memory_bytes"] == 64 << 20
    assert "leaves it 0.0625 of " in str(about["warnings"])


def test_a_recorder_on_fewer_cores_than_the_server_counts_those_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1} if pid == 0 else set(range(6)))
    monkeypatch.setattr(record, "groups_of_process", lambda _: [])
    monkeypatch.setattr(record._core, "memory_limit_bytes", lambda _: None)
    about = _about()
    assert about["machine"]["cores"] == 6
    assert "leaves it" not in str(about["warnings"])


def _about() -> dict[str, Any]:
    target = RecordingTarget(lambda: [_OWN], load_rules("postgres"))
    return record._initial_metadata(target)
