"""Block devices that hold recorded files, as a recording describes them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from tierwise.host import ledger, mounts
from tierwise.host.block_layer import Base, BlockLayer, Stretch, emulated_partition, number_in, whole_disk
from tierwise.host.disk import teardown as disk_teardown
from tierwise.model.device_chain import ChainLink
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role

_NEVER_WRITTEN = {"squashfs", "iso9660", "erofs"}
_WITHOUT_PLACES = {"btrfs"}
"""File systems whose extents are their own addresses, not sectors of a device."""


@dataclass
class BlockDevice:
    """The block device of a file system: a disk, a partition, a volume, or several devices as one."""

    name: str
    major: int
    minor: int
    mount: str | None
    disks: frozenset[str]
    """Physical devices below it."""
    first_sector: int
    """First sector on the device that block events name."""
    sectors: int
    profile: str | None
    """Profile of an emulated disk, as TOML."""
    server_pid: int | None
    """Pid of the server of an emulated disk."""
    write_cache: bool
    chain: list[ChainLink]
    stretches: list[Stretch]
    roles: set[Role] = field(default_factory=set)

    @property
    def tells_places(self) -> bool:
        """Whether its file system reports the location of a file on it."""
        systems = takewhile(lambda link: link.name is None, self.chain)
        return not any(link.kind in _WITHOUT_PLACES for link in systems)

    @property
    def untold(self) -> str | None:
        """Kind of the device that takes its requests, if the kernel does not trace them."""
        silent = {stretch.name for stretch in self.stretches if not stretch.told}
        if self.stretches and not silent:
            return None
        return next((link.kind for link in self.chain if link.name in silent), self.chain[0].kind)

    @property
    def described(self) -> dict[str, Any]:
        """Its entry in ``about.json``, without the shared disks."""
        return {
            "name": self.name,
            "major": self.major,
            "minor": self.minor,
            "mount": self.mount,
            "roles": [str(role) for role in Role if role in self.roles],
            "first_sector": self.first_sector,
            "sectors": self.sectors,
            "profile": self.profile,
            "write_cache": self.write_cache,
            "chain": [link.model_dump() for link in self.chain],
        }


class Devices:
    """Devices in the order in which they were found."""

    def __init__(self, pid: int | None = None, layer: BlockLayer | None = None) -> None:
        """Start empty.

        Args:
            pid: the process whose mounts count; this one when left out.
            layer: source of facts about block devices.
        """
        self.known: list[BlockDevice] = []
        self.without: dict[str, set[Role]] = {}
        """Roles of files without a block device, by file system."""
        self._pid, self._layer = pid, layer or BlockLayer()
        self._index_of: dict[int, int | None] = {}
        self._file_systems: dict[int, str] = {}
        self._known_by_name: dict[str, int] = {}

    def index_of(self, number: int, path: Path, role: Role | None = None) -> int | None:
        """Index of the device with this ``st_dev``; ``None`` if no block device backs it.

        Args:
            number: of the device.
            path: a path on it.
            role: role of the file at that path.
        """
        if number not in self._index_of:
            try:
                mount = mounts.mount_of(path, self._pid)
            except OSError:
                return None
            self._index_of[number] = self._meet(number, mount)
            self._file_systems[number] = "unknown" if mount is None else mount.file_system
        index = self._index_of[number]
        if role is not None:
            file_system = self._file_systems[number]
            there = (
                self.known[index].roles if index is not None else self.without.setdefault(file_system, set())
            )
            there.add(role)
        return index

    def meet_all(self) -> None:
        """Add every device that is mounted where the process sees it."""
        for mount in mounts.mounts(self._pid):
            if mount.file_system not in _NEVER_WRITTEN:
                self._meet(os.makedev(*mount.device), mount)

    @property
    def disk_servers(self) -> list[int]:
        """Pids of the servers of emulated disks that hold files with roles."""
        used = [device.server_pid for device in self.known if device.roles]
        return list(dict.fromkeys(pid for pid in used if pid is not None))

    @property
    def shared(self) -> list[int]:
        """A number for each device; devices that share a physical device have the same number."""
        groups: list[set[str]] = []
        for device in self.known:
            apart = [group for group in groups if not group & device.disks]
            groups = [*apart, set(device.disks).union(*(one for one in groups if one not in apart))]
        order: list[int] = []
        for device in self.known:
            order.append(next(at for at, group in enumerate(groups) if group & device.disks))
        return [list(dict.fromkeys(order)).index(group) for group in order]

    def _meet(self, number: int, mount: mounts.Mount | None) -> int | None:
        base = self._layer.under(number, mount)
        if not base.devices:
            return None
        name = base.devices[0].name
        if name not in self._known_by_name:
            self._known_by_name[name] = len(self.known)
            self.known.append(self._describe(base, mount))
        return self._known_by_name[name]

    def _describe(self, base: Base, mount: mounts.Mount | None) -> BlockDevice:
        first, *others = base.devices
        stretches = [] if others else self._layer.stretches(first)
        emulated = emulated_partition(stretches[0].name) if stretches else None
        start = stretches[0].first_sector if stretches else 0
        major, minor = map(int, (first / "dev").read_text("ascii").split(":"))
        return BlockDevice(
            name=first.name,
            major=major,
            minor=minor,
            mount=None if mount is None else str(mount.point),
            disks=frozenset(_disk_name(disk) for one in base.devices for disk in self._layer.disks(one)),
            first_sector=start + (0 if emulated is None else emulated.first_sector),
            sectors=sum(number_in(device / "size") for device in base.devices),
            profile=None if emulated is None else _profile_of(emulated.entry),
            server_pid=None if emulated is None else _server_pid_of(emulated.entry),
            write_cache=(whole_disk(first) / "queue/write_cache").read_text("ascii").strip() == "write back",
            chain=self._layer.chain(base),
            stretches=stretches,
        )


def _disk_name(disk: Path) -> str:
    """Name of the physical disk; partitions of an emulated disk are loop devices that share one."""
    emulated = emulated_partition(disk.name)
    return disk.name if emulated is None else f"emulated {emulated.entry.name}"


def _server_pid_of(entry: ledger.Entry) -> int | None:
    server = entry.facts.get("server")
    return server["pid"] if server else None


def _profile_of(entry: ledger.Entry) -> str:
    file = disk_teardown.config_file(Path(entry.facts["home"]))
    try:
        return str(json.loads(file.read_text("utf-8"))["profile"])
    except OSError as error:
        raise TierwiseError(f"emulated disk {entry.name!r}: {error}", "run tierwise clean") from error
