"""What a file system stands on, as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tierwise import _core
from tierwise.model.placement import Role
from tierwise.probe.probe_target import inspect_probe_target
from tierwise.recording import MountedDevice
from tierwise.recording.recording import StorageChainLink
from tierwise.report.recording.profile_report import device_lines


def test_a_file_system_in_memory_is_said_to_have_no_device() -> None:
    if inspect_probe_target(Path("/dev/shm")).file_system != "tmpfs":
        pytest.skip("no tmpfs here")
    assert inspect_probe_target(Path("/dev/shm")).label == "/dev/shm (tmpfs, no block device)"
    devices, indices = json.loads(_core.devices_of([Path("/dev/shm")], "[]"))
    assert (devices, indices) == ([], [None])


def test_a_profile_says_what_each_role_lies_on() -> None:
    def device(role: Role, name: str, shared: int, chain: bool = True) -> MountedDevice:
        links = [
            StorageChainLink(depth=0, kind="xfs"),
            StorageChainLink(depth=1, kind="LVM volume", name=name),
        ]
        facts = {"major": 253, "minor": 0, "mount": None, "first_sector": 0, "sectors": 1, "profile": None}
        return MountedDevice(
            name=name, roles=[role], shared=shared, write_cache=True, chain=links if chain else [], **facts
        )

    lines = list(device_lines([device(Role.LOG, "dm-0", 0), device(Role.DATA, "dm-1", 0)]))
    assert lines == [
        "Device of log: xfs on LVM volume dm-0; physically shared with data.",
        "Device of data: xfs on LVM volume dm-1; physically shared with log.",
    ]
    assert list(device_lines([device(Role.LOG, "dm-0", 0, chain=False)])) == []
