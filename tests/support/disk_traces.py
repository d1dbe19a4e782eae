"""What an emulated disk leaves on the machine while it is up, and must not leave afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from tierwise.host import block_devices, cgroups, ledger, mounts
from tierwise.host.disk.server import find
from tierwise.host.disk.teardown import config_file, home_of

NAME = f"test-{os.getpid()}"


def traces(name: str, mount_dir: Path) -> list[str]:
    """Everything of a disk that is still on the machine."""
    home = home_of(name)
    texts = [f"mount {mount.point}" for mount in mounts.mounts() if mount.point.is_relative_to(mount_dir)]
    texts += [f"mount {mount.point}" for mount in mounts.mounts() if mount.point.is_relative_to(home)]
    texts += [f"loop {device}" for device in block_devices.loops_below(home)]
    texts += [f"device {device}" for device in block_devices.served_to(home)]
    texts += [f"server {pid}" for pid in find(config_file(home))]
    texts += [f"file {path}" for path in (home, mount_dir) if path.exists()]
    texts += [f"entry {entry.name}" for entry in ledger.entries("disk") if entry.name == name]
    return texts + [f"group {path}" for path in cgroups.ROOT.glob(f"*/tierwise/{name}")]
