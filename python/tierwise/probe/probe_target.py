"""The target of a probe: the user's directory or device, and the block device under it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from tierwise import _core
from tierwise.host import mounts
from tierwise.host.disk.partitions import emulated_partitions
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.units import MIB
from tierwise.recording.recording import StorageChainLink, storage_chain_in_words

SMALLEST_BYTES = 16 * MIB
_KEEP_FREE_SHARE = 0.05
"""Share of a file system to keep free; a full one is slow, and its owner needs free space."""

_MEMORY_FILE_SYSTEMS = {"tmpfs", "ramfs", "devtmpfs", "rootfs"}
_VIRTUAL_DRIVERS = {"virtio_blk", "vbd", "xen_blkfront"}
_VIRTUAL_MODELS = (
    "virtual",
    "qemu",
    "vmware",
    "vbox",
    "msft",
    "google",
    "amazon",
    "persistentdisk",
    "nvme_card",
)


_SYSFS = Path("/sys/class/block")


@dataclass(frozen=True)
class ProbeTarget:
    """A directory for a temporary file, or a block device to overwrite.

    Attributes:
        path: as the user named it.
        block: name of the block device under it, such as ``sda``; ``None`` for memory and networks.
        file_system: its type; ``None`` for a block device itself.
        memory: whether the data is only in memory.
        virtual: whether a hypervisor emulates the device.
        rotational: the kernel's flag.
        write_cache: ``write back`` or ``write through``, as the kernel reports.
        fua: whether the kernel sends forced unit access.
        disks: number of physical devices below it.
        chain: the layers below the path, down to the disks, as text.
    """

    path: Path
    block: str | None
    file_system: str | None
    memory: bool
    virtual: bool
    rotational: bool | None
    write_cache: str | None
    fua: bool | None
    disks: int
    chain: str

    @property
    def is_device(self) -> bool:
        """Whether the device itself is overwritten."""
        return self.file_system is None

    @property
    def label(self) -> str:
        """For display: the path and the layers below it."""
        what = f"whole {self.chain}" if self.is_device else self.chain
        return f"{self.path} ({what}{'' if self.block else ', no block device'})"


def inspect_probe_target(path: Path) -> ProbeTarget:
    """Facts about a path before any measurement."""
    with os_errors(path, "name a directory or a block device"):
        mode = path.stat()
    if stat.S_ISBLK(mode.st_mode):
        _require_unmounted(path, mode.st_rdev)
        return _place(path)
    if not path.is_dir():
        raise TierwiseError(f"{path} is not a directory or a block device", "name one")
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        raise TierwiseError(
            f"{path} is on a file system that is mounted read-only", "name another directory, or remount it"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise TierwiseError(
            f"{path} may not be written by you", "name another directory, or run as its owner"
        )
    return _place(path)


def choose_probe_file_bytes(place: ProbeTarget, asked_bytes: int | None, default_bytes: int) -> int:
    """Size of the file: the requested size, or the default if space allows; a multiple of 1 MiB."""
    if asked_bytes is not None and asked_bytes < SMALLEST_BYTES:
        raise TierwiseError(
            f"--size: a file of {numbers.counted_noun(asked_bytes, 'byte')} tells nothing",
            f"give {SMALLEST_BYTES // MIB}M or more",
        )
    usage = shutil.disk_usage(place.path)
    room = int(usage.free - _KEEP_FREE_SHARE * usage.total)
    size = (min(default_bytes, room) if asked_bytes is None else asked_bytes) // MIB * MIB
    if size < SMALLEST_BYTES or size > room:
        shown = f"{max(room, 0) // MIB} MiB free beyond a reserve of {numbers.percent_text(_KEEP_FREE_SHARE)}"
        fix = f"make room, or give --size from {SMALLEST_BYTES // MIB}M to what is free"
        wanted = max(size, SMALLEST_BYTES) // MIB
        raise TierwiseError(f"{place.path}: {shown}, no room for {wanted} MiB", fix)
    return size


def capacity_bytes(place: ProbeTarget) -> int:
    """Size of the file system that holds a directory, free or not; 0 for a device, which is probed whole."""
    return 0 if place.is_device else shutil.disk_usage(place.path).total


def _place(path: Path) -> ProbeTarget:
    below = json.loads(_core.layers_under(path, json.dumps(emulated_partitions())))
    block = _whole_disk(Path(below["devices"][0])) if below["devices"] else None
    disks = [_SYSFS / name for name in below["disks"]]
    name = block.name if block else None
    rotational = _read(block, "queue/rotational") if block else None
    fua = _read(block, "queue/fua") if block else None
    file_system = below["file_systems"][-1] if below["file_systems"] else None
    return ProbeTarget(
        path=path,
        block=name,
        file_system=file_system,
        memory=file_system in _MEMORY_FILE_SYSTEMS or bool(name and name.startswith(("zram", "ram"))),
        virtual=any(map(_is_virtual, disks)),
        rotational=None if rotational is None else rotational == "1",
        write_cache=_read(block, "queue/write_cache") if block else None,
        fua=None if fua is None else fua == "1",
        disks=len(disks),
        chain=storage_chain_in_words([StorageChainLink.model_validate(link) for link in below["chain"]]),
    )


def _whole_disk(folder: Path) -> Path:
    """The disk of a partition; a disk is its own. Request queues belong to disks."""
    return folder.parent if (folder / "partition").exists() else folder


def _require_unmounted(path: Path, number: int) -> None:
    """Refuse a device that is mounted, whole or in part."""
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    parts = [block, *(file.parent for file in block.glob("*/partition"))]
    numbers = {(part / "dev").read_text("ascii").strip() for part in parts}
    for mount in mounts.mounts():
        if f"{mount.device[0]}:{mount.device[1]}" in numbers or mount.source == str(path):
            raise TierwiseError(f"{path} is mounted at {mount.point}", "unmount it, or name that directory")


def _is_virtual(disk: Path) -> bool:
    driver = disk / "device/driver"
    known = driver.resolve().name in _VIRTUAL_DRIVERS if driver.exists() else False
    names = f"{_read(disk, 'device/vendor') or ''} {_read(disk, 'device/model') or ''}".lower()
    return known or any(word in names for word in _VIRTUAL_MODELS)


def _read(block: Path, attribute: str) -> str | None:
    try:
        return (block / attribute).read_text("ascii", "replace").strip() or None
    except OSError:
        return None
