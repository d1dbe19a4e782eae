"""Block devices that are built on others, read from sysfs: volumes, encryption, arrays, partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import ledger
from tierwise.host.mounts import Mount, mount_of, run
from tierwise.model.device_chain import ChainLink
from tierwise.model.errors import TierwiseError
from tierwise.model.units import SECTOR_BYTES

_DM_KINDS = {"LVM-": "LVM volume", "CRYPT-": "dm-crypt", "mpath-": "multipath", "part": "partition"}
"""Kind by the prefix of ``dm/uuid``."""
_WHERE_IN_TABLE = {"linear": 3, "crypt": 6}
"""Index of the device field in a device-mapper table line, for targets that keep the order of sectors."""
_DEEPEST = 16


@dataclass(frozen=True)
class Stretch:
    """A contiguous range of a device's sectors, mapped to the device that block events name."""

    name: str
    number: int
    """Number of the device in block events, ``(major << 20) | minor``."""
    first_sector: int
    sectors: int
    offset_sectors: int
    """Offset of the range on the mapped device."""
    told: bool
    """Whether the kernel traces requests to it; false for a device that only passes them on in parts."""


@dataclass(frozen=True)
class Base:
    """File systems and devices that hold a file."""

    file_systems: tuple[str, ...]
    """An overlay, then its upper directory's; empty for a raw device or an unknown file system."""
    devices: tuple[Path, ...]
    """Several for btrfs; none for memory and network file systems."""


def _dm_table(number: str) -> str:
    major, minor = number.split(":")
    return run("dmsetup", "table", "--major", major, "--minor", minor)


class BlockLayer:
    """The block devices of a machine. A device is identified by its sysfs folder."""

    def __init__(self, sys: Path = Path("/sys"), dm_table: Callable[[str], str] = _dm_table) -> None:
        """Prepare.

        Args:
            sys: where sysfs is mounted.
            dm_table: lines of the device-mapper table of a device by its number, ``MAJOR:MINOR``.
        """
        self._sys, self._dm_table = sys, dm_table

    def folder(self, number: int) -> Path | None:
        """Give the sysfs folder of a device by its number; ``None`` if there is none."""
        link = self._sys / "dev/block" / f"{os.major(number)}:{os.minor(number)}"
        return link.resolve() if link.exists() else None

    def under(self, number: int, mount: Mount | None) -> Base:
        """File systems and devices that hold a file.

        Args:
            number: the file's ``st_dev``.
            mount: the mount that holds it. On btrfs and overlay, ``st_dev`` is not the number of a device.
        """
        if mount is not None and mount.upper is not None:
            below = self.under_path(mount.upper)
            return Base((mount.file_system, *below.file_systems), below.devices)
        systems = () if mount is None else (mount.file_system,)
        source = number if os.major(number) != 0 else None if mount is None else _device_number(mount.source)
        folder = None if source is None else self.folder(source)
        if folder is None:
            return Base(systems, ())
        for devices in (self._sys / "fs/btrfs").glob("*/devices"):
            members = sorted(member.resolve() for member in devices.iterdir())
            if folder in members:
                return Base(systems, tuple(members))
        return Base(systems, (folder,))

    def under_path(self, path: Path) -> Base:
        """File systems and devices that hold a path, as this process sees it; empty if it is missing."""
        try:
            return self.under(path.stat().st_dev, mount_of(path))
        except OSError:
            return Base((), ())

    def chain(self, base: Base) -> list[ChainLink]:
        """File systems and devices, each before those below it."""
        systems = [ChainLink(depth=depth, kind=kind) for depth, kind in enumerate(base.file_systems)]
        return systems + [link for device in base.devices for link in self._links(device, len(systems))]

    def disks(self, folder: Path) -> frozenset[Path]:
        """Physical devices below a device. A loop device counts as physical: its requests are its own."""
        below = self._below(folder)
        return frozenset[Path]().union(*map(self.disks, below)) if below else frozenset({folder})

    def stretches(
        self, folder: Path, first: int = 0, sectors: int | None = None, offset: int = 0
    ) -> list[Stretch]:
        """Map sectors of a device to the lowest device below it that keeps their order."""
        count = number_in(folder / "size") if sectors is None else sectors
        if (folder / "partition").exists():
            return self.stretches(folder.parent, first + number_in(folder / "start"), count, offset)
        pieces = self._pieces(folder)
        if pieces is None:
            major, minor = map(int, _text(folder / "dev").split(":"))
            number = major << 20 | minor
            return [Stretch(folder.name, number, first, count, offset, (folder / "mq").is_dir())]
        found: list[Stretch] = []
        for start, length, below, place in pieces:
            begin, end = max(first, start), min(first + count, start + length)
            if begin < end:
                at = place + begin - start
                found += self.stretches(below, at, end - begin, offset + begin - first)
        return found

    def _pieces(self, folder: Path) -> list[tuple[int, int, Path, int]] | None:
        """Start, length, device and first sector on it, for each piece; ``None`` if sectors change order."""
        if not (folder / "dm").is_dir():
            return None
        try:
            lines = [line.split() for line in self._dm_table(_text(folder / "dev")).splitlines()]
        except TierwiseError:
            return None
        found = []
        for start, length, target, *rest in lines:
            at = _WHERE_IN_TABLE.get(target)
            below = None if at is None else self._numbered(rest[at - 3])
            if at is None or below is None:
                return None
            found.append((int(start), int(length), below, int(rest[at - 2])))
        return found

    def _numbered(self, number: str) -> Path | None:
        major, _, minor = number.partition(":")
        known = major.isdecimal() and minor.isdecimal()
        return self.folder(os.makedev(int(major), int(minor))) if known else None

    def _links(self, folder: Path, depth: int) -> Iterator[ChainLink]:
        kind, label = self._kind(folder)
        below = self._below(folder)
        yield ChainLink(
            depth=depth,
            kind=kind,
            name=folder.name,
            label=label,
            sectors=number_in(folder / "size"),
            rotational=_text(folder / "queue/rotational") == "1" if kind == "disk" else None,
        )
        for device in below:
            yield from self._links(device, depth + 1)
        if kind == "loop" and depth < _DEEPEST:
            for link in self.chain(self.under_path(Path(label or "/"))):
                yield link.model_copy(update={"depth": link.depth + depth + 1})

    def _below(self, folder: Path) -> list[Path]:
        whole, slaves = whole_disk(folder), folder / "slaves"
        if whole != folder:
            return [whole]
        return sorted(link.resolve() for link in slaves.iterdir()) if slaves.is_dir() else []

    def _kind(self, folder: Path) -> tuple[str, str | None]:
        """Kind and label of a device."""
        if (folder / "partition").exists():
            return "partition", None
        if (folder / "dm").is_dir():
            uuid = _text(folder / "dm/uuid")
            kinds = (kind for start, kind in _DM_KINDS.items() if uuid.startswith(start))
            return next(kinds, "device-mapper"), _text(folder / "dm/name") or None
        if (folder / "md").is_dir():
            return f"md {_text(folder / 'md/level')}", None
        if (folder / "loop").is_dir():
            emulated = emulated_partition(folder.name)
            file = _text(folder / "loop/backing_file")
            return ("loop", file) if emulated is None else ("emulated disk", emulated.entry.name)
        kind = "memory" if folder.name.startswith(("zram", "ram")) else "disk"
        return kind, _text(folder / "device/model") or None


@dataclass(frozen=True)
class EmulatedPartition:
    """A loop device that is a partition of an emulated disk."""

    entry: ledger.Entry
    first_sector: int
    """First sector of the partition on the disk."""


def emulated_partition(loop: str) -> EmulatedPartition | None:
    """Look a loop device up in the ledger; ``None`` if it belongs to no emulated disk."""
    for entry in ledger.entries("disk"):
        first = 0
        for part in entry.facts["partitions"]:
            if part["loop"] == f"/dev/{loop}":
                return EmulatedPartition(entry, first)
            first += part["size_bytes"] // SECTOR_BYTES
    return None


def whole_disk(folder: Path) -> Path:
    """The disk of a partition; a disk is its own. Request queues belong to disks."""
    return folder.parent if (folder / "partition").exists() else folder


def number_in(file: Path) -> int:
    """The number in a sysfs file."""
    return int(file.read_text("ascii"))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _device_number(source: str) -> int | None:
    try:
        return Path(source).stat().st_rdev or None if source.startswith("/dev/") else None
    except OSError:
        return None
