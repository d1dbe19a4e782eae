"""Partitions of emulated disks: attached with their file systems, found, and remounted to empty their caches.

Their block devices are listed here because sysfs tells no more of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import block_devices, ledger, mounts
from tierwise.host.disk import disk_teardown
from tierwise.host.disk.disk_config import Partition, require_empty_directory
from tierwise.host.disk.disk_server import send_command
from tierwise.host.disk.disk_teardown import control_socket, fuse_directory
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import parse_as_model, parse_json
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import AttainableRate
from tierwise.results.measurements import TolerantModel


class _Server(TolerantModel):
    pid: int


class MountedPartition(TolerantModel):
    """A partition with its file system."""

    name: str
    device: str
    mount: str
    file_system: str
    size_bytes: int


class DiskFacts(TolerantModel):
    """Facts of a disk in the ledger, which another version of tierwise may have written."""

    home: str
    profile: str
    model: str
    rotational: bool
    write_cache: bool
    partitions: list[MountedPartition]
    """Empty while it is being made."""
    server: _Server | None = None
    path_us: float | None = None
    attainable: list[AttainableRate] = []


def disk_facts_of(entry: ledger.LedgerEntry) -> DiskFacts:
    """The facts of a disk.

    Raises:
        TierwiseError: if one is missing: the entry is of another version of tierwise.
    """
    where = f"{entry.path}: of another version of tierwise, or damaged"
    return parse_as_model(DiskFacts, entry.facts, where, f"tierwise disk down {entry.name}")


def emulated_partitions() -> list[dict[str, Any]]:
    """All of them, as the compiled core takes them; those of a disk half taken down are left out."""
    found = []
    for entry in ledger.entries("disk"):
        facts = disk_facts_of(entry)
        file, mend = disk_teardown.disk_config_file(Path(facts.home)), f"tierwise disk down {entry.name}"
        try:
            config = parse_json(file.read_bytes(), str(file), mend)
        except OSError:
            continue
        if not isinstance(config, dict) or "profile" not in config:
            raise TierwiseError(f"{file}: no profile of an emulated disk", mend)
        first = 0
        for part in facts.partitions:
            found.append(
                {
                    "device": part.device.removeprefix("/dev/"),
                    "disk": entry.name,
                    "first_sector": first,
                    "profile": config["profile"],
                    "path_us": facts.path_us,
                    "path_added_us": _added_us(facts.attainable),
                    "server_pid": facts.server and facts.server.pid,
                }
            )
            first += part.size_bytes // SECTOR_BYTES
    return found


def _added_us(rates: Iterable[AttainableRate]) -> list[tuple[int, float]]:
    """Time that reads take longer than by the device's model, by depth."""
    return [(rate.depth, round(rate.longer_us, 1)) for rate in rates if rate.op == "read"]


def attach_partitions(home: Path, names: Sequence[str], reported: block_devices.ReportedCaches) -> list[Path]:
    """Attach a block device to each partition: the server's own, or loop devices on its files."""
    own = send_command(control_socket(home), "attach")["devices"]
    files = [fuse_directory(home) / f"{name}.img" for name in names]
    devices = [Path(device) for device in own] or [block_devices.attach_loop(file) for file in files]
    for device in devices:
        block_devices.set_queue_attributes(device, reported)
    return devices


def make_mounted_partition(part: Partition, device: Path, point: Path) -> dict[str, Any]:
    """Make a file system on a new partition and mount it; give the facts for its ledger entry."""
    mounts.make_file_system(part.fs, device)
    with ledger.hold_lock():  # another disk may be made there at the same time
        require_empty_directory(point)
        mounts.mount(device, point, part.fs)
    return {
        "name": part.name,
        "device": str(device),
        "mount": str(point),
        "file_system": part.fs,
        "size_bytes": part.size_bytes,
    }


def release_partitions(home: Path, placed: Sequence[Mapping[str, Any]]) -> None:
    """Detach partitions from their users: open files stay open and give errors.

    The server no longer answers to handles from before a power cut, so this call does not block.
    """
    for mounted in mounts.mounts_last_first():
        if (str(mounted.point), mounted.source) in {(part["mount"], part["device"]) for part in placed}:
            mounts.require_topmost_mount(mounted)
            mounts.unmount(mounted.point, lazily=True)
    for device in block_devices.loop_devices_below(home):
        block_devices.detach_loop_lazily(device)
    send_command(control_socket(home), "detach", end=False)


def reattach_partitions(
    home: Path, placed: Sequence[Mapping[str, Any]], reported: block_devices.ReportedCaches
) -> list[dict[str, Any]]:
    """Attach detached partitions to new devices, which do not see the old devices' cached pages."""
    devices = attach_partitions(home, [part["name"] for part in placed], reported)
    return [{**part, "device": str(device)} for part, device in zip(placed, devices, strict=True)]


def mount_reattached(placed: Sequence[Mapping[str, Any]]) -> list[TierwiseError]:
    """Mount partitions that already have file systems; these recover as after any power cut.

    Gives an error with the kernel's message for each that is beyond recovery.
    """
    failed: list[TierwiseError] = []
    for part in placed:
        try:
            mounts.mount(Path(part["device"]), Path(part["mount"]), part["file_system"])
        except TierwiseError as error:
            failed.append(error)
    return failed


def is_rotational(profile: DeviceProfile) -> bool:
    """Whether to report the device to the kernel as rotational: a hard disk, or an array of them."""
    return profile.medium == "hdd"


PartitionFacts = Mapping[str, Any]
"""Facts of a partition in the ledger."""


def own_partitions(devices: Collection[int]) -> dict[int, PartitionFacts]:
    """Partitions of disks that this process brought up, by device number, of those numbers.

    The file system of any other disk belongs to the user, who may have made it with ``tierwise disk up``.
    """
    mine = ledger.ProcessIdentity.mine()
    found = {
        os.makedev(*block_devices.device_number(Path(part["device"]))): part
        for entry in ledger.entries("disk")
        if entry.owner == mine
        for part in entry.facts["partitions"]
    }
    return {device: part for device, part in found.items() if device in devices}


def remount_partition(partition: PartitionFacts) -> None:
    """Unmount a partition and mount it again: the kernel keeps no page, inode or directory entry of it.

    Raises:
        TierwiseError: if it is in use, naming the users; it stays mounted, and stays warm.
        HostError: if it cannot be mounted again.
    """
    point, device = Path(partition["mount"]), Path(partition["device"])
    mounts.unmount(point)
    try:
        block_devices.drop_buffers(device, unused=True)
    finally:
        mounts.mount(device, point, partition["file_system"])


def drop_cached_metadata(partitions: Iterable[PartitionFacts]) -> None:
    """Drop the file system's metadata from the buffers of mounted partitions."""
    for partition in partitions:
        block_devices.drop_buffers(Path(partition["device"]))
