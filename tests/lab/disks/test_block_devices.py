"""Loop devices: who keeps one is named, and a file of any name may lie behind one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.host.block_devices import attach_loop, detach_loop, device_number, loop_devices_below
from tierwise.host.mounts import device_in_use_text, make_file_system, mount, unmount
from tierwise.model.errors import TierwiseError


def namespace(pid: int | str) -> Path:
    return Path(f"/proc/{pid}/ns/mnt").readlink()


def test_a_process_with_a_mount_of_its_own_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, point = tmp_path / "image", tmp_path / "mount"
    with file.open("wb") as image:
        image.truncate(32 << 20)
    point.mkdir()
    device = attach_loop(file)
    make_file_system("ext4", device)
    mount(device, point, "ext4")
    holder = subprocess.Popen(["unshare", "--mount", "sleep", "60"])
    try:
        until(lambda: namespace(holder.pid) != namespace("self"))
        assert device_in_use_text(device_number(device)) == f"is mounted at {point}"
        unmount(point)
        with monkeypatch.context() as patch:
            patch.setattr("tierwise.host.block_devices._GONE_AFTER_S", 0.2)
            with pytest.raises(TierwiseError, match=rf"{holder.pid} \((sleep|unshare)\)"):
                detach_loop(device)
    finally:
        holder.kill()
        holder.wait()
        detach_loop(device)


def test_a_file_behind_a_loop_device_may_have_any_name(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"b\xe9\n l.img")
    with file.open("wb") as image:
        image.truncate(1 << 20)
    device = attach_loop(file)
    try:
        assert loop_devices_below(tmp_path) == [device]
    finally:
        detach_loop(device)
