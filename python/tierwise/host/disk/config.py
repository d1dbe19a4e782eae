"""Configuration file of an emulated disk's server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tierwise.device_models.profiles import Profile
from tierwise.host.disk import teardown as disk_teardown
from tierwise.host.disk.request import Partition
from tierwise.model.output_files import new_folder, open_file, own_folder

SPIN_US = 60.0
"""Longest busy wait before a deadline: 60 µs gave a median deadline overrun below 1 µs."""

WRITE_BACK_S = 2.0
"""Age at which a volatile cache writes data without a flush. Our choice: vendors do not publish it."""


def write(
    home: Path, name: str, profile: Profile, parts: Sequence[Partition], start: Mapping[str, Any]
) -> Path:
    """Make the directories of a disk and the server's configuration file; give the file's path.

    Args:
        home: the disk's directory, not there yet.
        name: of the disk.
        profile: of the device.
        parts: the partitions.
        start: seed, state of the device, and whether it lies about flushes.
    """
    fuse = disk_teardown.fuse_directory(home)
    own_folder(home)
    new_folder(fuse)
    described = {
        "name": name,
        "mount": str(fuse),
        "socket": str(disk_teardown.control_socket(home)),
        "profile": profile.text,
        "profile_file": str(profile.file),
        "library": dict(profile.library),
        **start,
        "partitions": [{"name": part.name, "size_bytes": part.size_bytes} for part in parts],
        "path_us": 0,
        "spin_us": SPIN_US,
        "write_back_s": WRITE_BACK_S,
    }
    config = disk_teardown.config_file(home)
    with open_file(config, "new") as file:
        file.write(json.dumps(described).encode())
    return config
