"""Block devices that hold recorded files, as a recording describes them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise.errors import TierwiseError
from tierwise.host import disk_teardown, ledger, mounts
from tierwise.roles import Role
from tierwise.units import SECTOR_BYTES

_SYS = Path("/sys/dev/block")
_NEVER_WRITTEN = {"squashfs", "iso9660", "erofs"}


@dataclass
class BlockDevice:
    """A partition, or a whole disk without any, that holds a file system."""

    name: str
    major: int
    minor: int
    mount: str | None
    shared: int
    """Partitions with the same number share one physical device."""
    first_sector: int
    """Of the partition on that device."""
    sectors: int
    profile: str | None
    """The profile as TOML, of an emulated disk."""
    write_cache: bool
    number: int
    """Of the whole disk, ``(major << 20) | minor``, as block events name it."""
    start_sector: int
    """Of the partition on what block events name."""
    roles: set[Role] = field(default_factory=set)

    def described(self) -> dict[str, Any]:
        """In terms of JSON."""
        return {**vars(self), "roles": [str(role) for role in Role if role in self.roles]}


class Devices:
    """The devices that were met, in order."""

    def __init__(self) -> None:
        """None yet."""
        self.known: list[BlockDevice] = []
        self._index_of: dict[int, int | None] = {}
        self._shared: dict[str, int] = {}

    def index_of(self, number: int) -> int | None:
        """Index of the device with a ``st_dev``; ``None`` where there is no block device behind it."""
        if number not in self._index_of:
            self._index_of[number] = self._meet(number)
        return self._index_of[number]

    def meet_all(self, pids: list[int]) -> None:
        """Meet every device that is mounted where these processes see it."""
        alive = [pid for pid in pids if Path(f"/proc/{pid}/mountinfo").exists()]
        for mount in mounts.mounts(alive[0] if alive else None):
            if mount.file_system not in _NEVER_WRITTEN:
                self.index_of(os.makedev(*mount.device))

    def _meet(self, number: int) -> int | None:
        device = _block_number(number)
        folder = None if device is None else _SYS / f"{os.major(device)}:{os.minor(device)}"
        if device is None or folder is None or not folder.exists():
            return None
        self.known.append(self._describe(device, folder.resolve()))
        return len(self.known) - 1

    def _describe(self, device: int, folder: Path) -> BlockDevice:
        whole = folder.parent if (folder / "partition").exists() else folder
        start = _number_in(folder / "start") if whole != folder else 0
        mount = _mount_of(device)
        emulated = _emulated(folder.name)
        major, minor = map(int, (whole / "dev").read_text("ascii").split(":"))
        key, first, profile = (whole.name, start, None) if emulated is None else emulated
        return BlockDevice(
            name=folder.name,
            major=os.major(device),
            minor=os.minor(device),
            mount=None if mount is None else str(mount.point),
            shared=self._shared.setdefault(key, len(self._shared)),
            first_sector=first,
            sectors=_number_in(folder / "size"),
            profile=profile,
            write_cache=(whole / "queue" / "write_cache").read_text("ascii").strip() == "write back",
            number=major << 20 | minor,
            start_sector=start,
        )


def _block_number(number: int) -> int | None:
    """Number of the block device under a file system; some (btrfs) have a number of their own."""
    if os.major(number) != 0:
        return number
    device = (os.major(number), os.minor(number))
    source = next((mount.source for mount in mounts.mounts() if mount.device == device), "")
    try:
        return Path(source).stat().st_rdev or None if source.startswith("/dev/") else None
    except OSError:
        return None


def _mount_of(device: int) -> mounts.Mount | None:
    number = (os.major(device), os.minor(device))
    return next((mount for mount in mounts.mounts() if mount.device == number), None)


def _number_in(file: Path) -> int:
    return int(file.read_text("ascii"))


def _emulated(loop: str) -> tuple[str, int, str] | None:
    """Disk, first sector on it, and profile, of a loop device that is a partition of an emulated disk."""
    for entry in ledger.entries("disk"):
        first = 0
        for part in entry.facts["partitions"]:
            if part["loop"] == f"/dev/{loop}":
                return f"emulated {entry.name}", first, _profile_of(entry)
            first += part["size_bytes"] // SECTOR_BYTES
    return None


def _profile_of(entry: ledger.Entry) -> str:
    file = disk_teardown.config_file(Path(entry.facts["home"]))
    try:
        return str(json.loads(file.read_text("utf-8"))["profile"])
    except OSError as error:
        raise TierwiseError(f"emulated disk {entry.name!r}: {error}", "run tierwise clean") from error
