"""Attaches the partitions of an emulated disk: loop devices, file systems, mounts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tierwise.device_models.profiles import Profile
from tierwise.host import loop, mounts
from tierwise.host.disk import teardown as disk_teardown
from tierwise.host.disk.request import Partition


def place(home: Path, part: Partition, point: Path, rotational: bool) -> dict[str, Any]:
    """Make a file system on a new partition and mount it; give the facts for its ledger entry."""
    device = _attach(home, part.name, rotational)
    mounts.make_file_system(part.fs, device)
    mounts.mount(device, point, part.fs)
    return {
        "name": part.name,
        "loop": str(device),
        "mount": str(point),
        "file_system": part.fs,
        "size_bytes": part.size_bytes,
    }


def let_go(home: Path, placed: Sequence[Mapping[str, Any]]) -> None:
    """Detach partitions from their users: open files stay open and give errors.

    The server no longer answers to handles from before a power cut, so this call does not block.
    """
    for part in placed:
        while mounts.mount_at(Path(part["mount"])):
            mounts.unmount(Path(part["mount"]), lazily=True)
    for device in loop.attached_below(home):
        loop.let_go(device)


def attach_again(home: Path, placed: Sequence[Mapping[str, Any]], rotational: bool) -> list[dict[str, Any]]:
    """Attach detached partitions to new loop devices, which do not see the old devices' cached pages."""
    return [{**part, "loop": str(_attach(home, part["name"], rotational))} for part in placed]


def mount_again(placed: Sequence[Mapping[str, Any]]) -> None:
    """Mount partitions that already have file systems; these recover as after any power cut.

    Raises:
        TierwiseError: with the kernel's message, if one is beyond recovery.
    """
    for part in placed:
        mounts.mount(Path(part["loop"]), Path(part["mount"]), part["file_system"])


def _attach(home: Path, name: str, rotational: bool) -> Path:
    device = loop.attach(disk_teardown.fuse_directory(home) / f"{name}.img")
    loop.configure(device, rotational)
    return device


def rotates(profile: Profile) -> bool:
    """Whether to report the device to the kernel as rotational: a hard disk, or an array of them."""
    return _rotates(profile.text, profile.library)


def _rotates(text: str, library: Mapping[str, str]) -> bool:
    table = tomllib.loads(text)
    while "like" in table:
        table = {**tomllib.loads(library[table.pop("like")]), **table}
    if table["kind"] == "array":
        return _rotates(library[table["member"]], library)
    return bool(table["kind"] == "hdd")
