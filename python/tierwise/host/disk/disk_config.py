"""A request for an emulated disk, with its faults: checked first, then written for its server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import doctor, mounts
from tierwise.host.disk.disk_teardown import control_socket, disk_config_file, fuse_directory
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.names import resolved_path
from tierwise.model.output_files import make_new_folder, make_own_folder, open_output_file
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import StrictModel

Precondition = Literal["fresh", "sequential", "random"]

_LONGEST_S = 365 * 86_400.0
_LARGEST_FACTOR = 1e6
_MOST_REQUESTS = 10**15


class PowerCutReport(StrictModel):
    """Result of a power cut.

    Unflushed writes touched ``unflushed_sectors`` sectors. ``kept_sectors`` of them hold the data of one of
    these writes; ``lost_sectors`` hold the data from before. A torn write has both kept and lost sectors.
    """

    unflushed_writes: int
    unflushed_sectors: int
    kept_sectors: int
    lost_sectors: int
    torn_writes: int
    failed_requests: int


@dataclass(frozen=True)
class DiskFaults:
    """Faults that are active from the moment a disk is up; see the methods of ``EmulatedDisk``."""

    fail_after_s: float | None = None
    fail_after_requests: int | None = None
    slow_factor: float = 1
    slow_for_s: float = 0
    unreadable: Sequence[range] = ()
    """Sector ranges on the whole device."""

    def commands(self, size_bytes: int) -> list[tuple[str, dict[str, Any]]]:
        """Server commands that set up these faults on a device of ``size_bytes``."""
        whole = {"name": "the device", "size_bytes": size_bytes}
        commands = [
            ("unreadable", bad_sector_arguments(sectors.start, sectors.stop - 1, whole, 0))
            for sectors in self.unreadable
        ]
        if bool(self.slow_for_s) != (self.slow_factor != 1):
            raise TierwiseError(
                f"a disk slowed by a factor of {self.slow_factor:g} for {self.slow_for_s:g} s is not slower",
                "give both a factor above 1 and a time",
            )
        if self.slow_for_s:
            commands.append(("slow", slow_arguments(self.slow_factor, self.slow_for_s)))
        if self.fail_after_s is not None or self.fail_after_requests is not None:
            commands.append(("fail", failure_arguments(self.fail_after_s, self.fail_after_requests)))
        return commands


def failure_arguments(after_s: float | None, after_requests: int | None) -> dict[str, Any]:
    """Arguments of the server's command; with neither argument the device fails at once."""
    if after_s is not None and after_requests is not None:
        raise TierwiseError("a disk fails after a time or after requests, not both", "give one of them")
    if after_requests is not None:
        if not 0 <= after_requests <= _MOST_REQUESTS:
            raise TierwiseError(
                f"a disk cannot fail after {after_requests} requests", f"use 0 to {_MOST_REQUESTS:,}"
            )
        return {"after": {"requests": after_requests}}
    return {"after": {"seconds": _seconds("a disk fails after", after_s or 0.0)}}


def slow_arguments(factor: float, for_s: float) -> dict[str, Any]:
    """Arguments of the server's command."""
    if not 1 <= factor <= _LARGEST_FACTOR:
        raise TierwiseError(f"a disk cannot be slowed by a factor of {factor:g}", "use 1 to 1,000,000")
    return {"factor": factor, "length_s": _seconds("a disk is slow for", for_s)}


def bad_sector_arguments(
    first: int, last: int, partition: dict[str, Any], start_bytes: int
) -> dict[str, Any]:
    """Arguments of the server's command, for sectors of a partition that starts at byte ``start_bytes``."""
    sectors = partition["size_bytes"] // SECTOR_BYTES
    if not 0 <= first <= last < sectors:
        raise TierwiseError(
            f"sectors {first}-{last} are no range within {partition['name']!r}", f"use 0-{sectors - 1}"
        )
    start = start_bytes // SECTOR_BYTES
    return {"first": start + first, "last": start + last}


def _seconds(what: str, seconds: float) -> float:
    if not (math.isfinite(seconds) and 0 <= seconds <= _LONGEST_S):
        raise TierwiseError(f"{what} {seconds:g} s", f"use 0 to {_LONGEST_S:,.0f} s")
    return seconds


def require_possible_disk(profile: DeviceProfile, lies_about_flush: bool, precondition: str) -> None:
    """Refuse a combination that a disk of this profile cannot have."""
    if lies_about_flush and not profile.write_cache:
        raise TierwiseError(
            f"{profile.name} has no volatile write cache to lie about",
            "use a profile with write_cache = true",
        )
    if precondition not in get_args(Precondition):
        raise TierwiseError(
            f"a disk cannot start {precondition!r}", f"use {', '.join(get_args(Precondition))}"
        )


Transport = Literal["fuse", "fuse-io-uring", "ublk"]
"""Ways of requests to a disk's server: ``/dev/fuse``, FUSE over io_uring (Linux 6.14), or ublk (6.5)."""

SPIN_US = 60.0
"""Longest busy wait before a deadline: 60 µs gave a median deadline overrun below 1 µs."""

WRITE_BACK_S = 2.0
"""Age at which a volatile cache writes data without a flush. Our choice: vendors do not publish it."""


def write_disk_config(
    home: Path,
    name: str,
    profile: DeviceProfile,
    parts: Sequence[Partition],
    start: Mapping[str, Any],
    transport: Transport | None,
) -> Path:
    """Make the directories of a disk and the server's configuration file; give the file's path."""
    fuse = fuse_directory(home)
    make_own_folder(home)
    make_new_folder(fuse)
    described = {
        "name": name,
        "transport": transport,
        "mount": str(fuse),
        "socket": str(control_socket(home)),
        "profile": profile.text,
        "profile_file": str(profile.file),
        "library": dict(profile.library),
        **start,
        "partitions": [{"name": part.name, "size_bytes": part.size_bytes} for part in parts],
        "path_us": 0,
        "spin_us": SPIN_US,
        "write_back_s": WRITE_BACK_S,
    }
    config = disk_config_file(home)
    with open_output_file(config, "new") as file:
        file.write(json.dumps(described).encode())
    return config


WHOLE = "disk"
"""Name of a single partition that is mounted at the directory itself."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
_ALIGNMENT_BYTES = 4096


@dataclass(frozen=True)
class Partition:
    """A part of an emulated disk. ``size_bytes`` is rounded down to a multiple of 4096."""

    name: str
    size_bytes: int
    fs: str = "ext4"


def checked_partitions(name: str, profile: DeviceProfile, partitions: Sequence[Partition]) -> list[Partition]:
    """The partitions, rounded down to whole blocks."""
    lacking = doctor.failed_emulation_checks(doctor.check_machine())
    if lacking:
        raise HostError(f"no emulated disk here: {lacking[0].detail}", lacking[0].fix)
    return block_aligned_partitions(name, profile, partitions)


def block_aligned_partitions(
    name: str, profile: DeviceProfile, partitions: Sequence[Partition]
) -> list[Partition]:
    """The partitions, rounded down to whole blocks, whether or not this machine can emulate disks."""
    for label in [name, *(part.name for part in partitions)]:
        if not _NAME.fullmatch(label):
            raise TierwiseError(f"{label!r} is no name for a disk", "use a-z, 0-9, '_', '.' and '-'")
    for part in partitions:
        mounts.require_file_system_tools(part.fs, part.size_bytes, f"disk {name!r}, partition {part.name!r}")
    asked = sum(part.size_bytes for part in partitions)
    if not partitions or asked > profile.capacity_bytes:
        raise TierwiseError(
            f"disk {name!r}: {asked} bytes do not fit on {profile.name} of {profile.capacity_bytes} bytes",
            "make the partitions smaller",
        )
    return [
        Partition(part.name, part.size_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES, part.fs)
        for part in partitions
    ]


def mount_points(parts: Sequence[Partition], mount_dir: Path) -> dict[str, Path]:
    """Mount point of each partition: below ``mount_dir``, or ``mount_dir`` itself for :data:`WHOLE`."""
    if [part.name for part in parts] == [WHOLE]:
        return {WHOLE: mount_dir}
    return {part.name: mount_dir / part.name for part in parts}


def require_empty_directory(mount_dir: Path) -> None:
    """Refuse a directory that is not empty or is a mount point."""
    if mounts.mount_at(resolved_path(mount_dir)) is not None:
        raise TierwiseError(f"{mount_dir}: something is mounted there", "name another directory")
    if mount_dir.exists() and not mount_dir.is_dir():
        raise TierwiseError(f"{mount_dir} is not a directory", "name an empty directory")
    if mount_dir.exists() and any(mount_dir.iterdir()):
        raise TierwiseError(f"{mount_dir} is not empty", "name an empty directory, or one to be made")
