"""Loop devices: who keeps one is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.host.block_devices import attach_loop, detach, number
from tierwise.host.mounts import device_in_use_by, make_file_system, mount, unmount
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
        assert device_in_use_by(number(device)) == f"is mounted at {point}"
        unmount(point)
        with monkeypatch.context() as patch:
            patch.setattr("tierwise.host.block_devices._GONE_AFTER_S", 0.2)
            with pytest.raises(TierwiseError, match=rf"{holder.pid} \((sleep|unshare)\)"):
                detach(device)
    finally:
        holder.kill()
        holder.wait()
        detach(device)
