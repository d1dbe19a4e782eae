"""What an emulated disk leaves on the machine while it is up, and must not leave afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from tierwise.host import block_devices, cgroups, ledger, mounts
from tierwise.host.disk.disk_server import disk_server_pids
from tierwise.host.disk.disk_teardown import disk_config_file, disk_directory

NAME = f"test-{os.getpid()}"


def traces(name: str, mount_dir: Path) -> list[str]:
    """Everything of a disk that is still on the machine."""
    home = disk_directory(name)
    texts = [f"mount {mount.point}" for mount in mounts.mounts() if mount.point.is_relative_to(mount_dir)]
    texts += [f"mount {mount.point}" for mount in mounts.mounts() if mount.point.is_relative_to(home)]
    texts += [f"loop {device}" for device in block_devices.loop_devices_below(home)]
    texts += [f"device {device}" for device in block_devices.devices_of_disk(home)]
    texts += [f"server {pid}" for pid in disk_server_pids(disk_config_file(home))]
    texts += [f"file {path}" for path in (home, mount_dir) if path.exists()]
    texts += [f"entry {entry.name}" for entry in ledger.entries("disk") if entry.name == name]
    return texts + [f"group {path}" for path in cgroups.ROOT.glob(f"*/tierwise/{name}")]
