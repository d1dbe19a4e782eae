"""Emulated disks: a device model as a real block device, with real file systems on it.

A disk is cut into partitions. Each has its own loop device, file system, mount and counters; all of them
share one model: one head, one queue, one cache.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from tierwise.errors import TierwiseError
from tierwise.host import disk_control, disk_server, disk_stats, disk_teardown, ledger, loop, mounts
from tierwise.host.clean import clean
from tierwise.host.disk_path import measure_path_us
from tierwise.host.disk_request import WHOLE, Partition, checked_partitions, mount_points, require_unused
from tierwise.host.disk_stats import DiskStats
from tierwise.profiles import Profile

__all__ = ["SPIN_US", "WHOLE", "DiskStats", "EmulatedDisk", "Partition", "list_disks"]

SPIN_US = 60.0
"""Longest busy waiting of a server before an answer is due: 60 µs gave a median lateness below 1 µs."""

_STARTS_WITHIN_S = 20


@dataclass
class EmulatedDisk:
    """An emulated disk that is up; as a context manager it takes itself down."""

    entry: ledger.Entry
    mounts: Mapping[str, Path]
    """Mount point of each partition."""
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def up(
        cls,
        name: str,
        profile: Profile,
        partitions: Sequence[Partition],
        mount_dir: Path,
        seed: int = 0,
        owner: Literal["caller", "server"] = "caller",
        *,
        path_us: float | None = None,
    ) -> Self:
        """Make a disk, its file systems and its mounts: all of them, or nothing.

        Each partition is mounted at ``mount_dir/NAME``; a single one called ``WHOLE``, at ``mount_dir``.

        Args:
            name: unique on this machine.
            profile: the model and its parameters.
            partitions: in order of their sectors; on a hard disk the first are the outermost.
            mount_dir: a directory that is empty or not there yet.
            seed: of everything random in the model.
            owner: whose death lets :func:`tierwise.host.clean.clean` take the disk down.
            path_us: latency of loop and FUSE to make good; measured when left out.

        Raises:
            TierwiseError: naming what is wrong or missing; nothing is left behind.
        """
        parts = checked_partitions(name, profile, partitions)
        points = mount_points(parts, mount_dir.absolute())
        clean()
        require_unused(mount_dir.absolute())
        home = disk_teardown.home_of(name)
        described = {"profile": profile.name, "model": profile.kind, "partitions": []}
        entry = ledger.add("disk", name, home=str(home), made=[], **described)
        disk = cls(entry, points)
        try:
            disk._make(profile, parts, seed, path_us)
            if owner == "server":
                disk.entry = disk.entry.update(owner=ledger.Identity(**disk.entry.facts["server"]))
        except BaseException:
            disk._undo()
            raise
        return disk

    @classmethod
    def find(cls, name: str) -> Self:
        """The disk of that name, made by whichever process.

        Raises:
            TierwiseError: if there is none.
        """
        entry = ledger.find("disk", name)
        if entry is None:
            known = ", ".join(entry.name for entry in ledger.entries("disk")) or "none is up"
            raise TierwiseError(f"there is no disk {name!r}", f"tierwise disk list ({known})")
        return cls(entry, {part["name"]: Path(part["mount"]) for part in entry.facts["partitions"]})

    def set_timing(self, on: bool) -> None:
        """Answer at the model's pace (``True``), or at once, for instance while tables are loaded."""
        self._ask("timing", on=on)

    def stats(self) -> DiskStats:
        """Counters since the last reset.

        Raises:
            TierwiseError: if the server does not answer, or the disk is still being made.
        """
        if not self.entry.facts["partitions"]:
            raise TierwiseError(f"disk {self.entry.name!r} is still being made", "ask again in a second")
        return disk_stats.from_answer(self.entry, self._ask("stats"))

    def reset_stats(self) -> None:
        """Start all counters from zero."""
        self._ask("reset_stats")

    def down(self) -> None:
        """Unmount and remove everything. It is no error if the server has died or all is gone.

        Raises:
            TierwiseError: if another process owns the disk, or one still uses it.
        """
        owner = self.entry.owner
        if owner.alive and owner.pid not in (ledger.Identity.mine().pid, self.entry.facts["server"]["pid"]):
            raise TierwiseError(
                f"disk {self.entry.name!r} belongs to process {owner.pid}", "end that process"
            )
        with ledger.locked():
            self._undo()

    def __enter__(self) -> Self:
        """Give the disk."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the disk down."""
        self.down()

    def _ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        return disk_control.ask(disk_teardown.control_socket(self._home), command, **arguments)

    @property
    def _home(self) -> Path:
        return Path(self.entry.facts["home"])

    def _undo(self) -> None:
        disk_teardown.take_down(self.entry)

    def _make(self, profile: Profile, parts: Sequence[Partition], seed: int, path_us: float | None) -> None:
        self._start_server(profile, parts, seed)
        self.set_timing(False)
        self._make_directories()
        placed = [self._place(part, rotational=profile.kind == "hdd") for part in parts]
        self.entry = self.entry.update(partitions=placed)
        measured_us = measure_path_us(Path(placed[0]["loop"])) if path_us is None else path_us
        self._ask("path", us=measured_us)
        self.set_timing(True)
        self.reset_stats()

    def _start_server(self, profile: Profile, parts: Sequence[Partition], seed: int) -> None:
        fuse = disk_teardown.fuse_directory(self._home)
        fuse.mkdir(parents=True)
        self._home.chmod(0o700)
        config = disk_teardown.config_file(self._home)
        described = {
            "name": self.entry.name,
            "mount": str(fuse),
            "socket": str(disk_teardown.control_socket(self._home)),
            "profile": profile.text,
            "profile_file": str(profile.file),
            "library": dict(profile.library),
            "seed": seed,
            "partitions": [{"name": part.name, "size_bytes": part.size_bytes} for part in parts],
            "path_us": 0,
            "spin_us": SPIN_US,
        }
        config.write_text(json.dumps(described), encoding="utf-8")
        log = self._home / "log"
        self._server = disk_server.spawn(config, log)
        identity = ledger.Identity.of(self._server.pid)
        if identity is not None:
            self.entry = self.entry.update(server=vars(identity))
        self._await_server(log)

    def _await_server(self, log: Path) -> None:
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while not disk_teardown.control_socket(self._home).exists():
            if self._server is not None and self._server.poll() is not None:
                said = log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
                raise TierwiseError(f"disk {self.entry.name!r}: {said[-1]}", "see tierwise doctor")
            if time.monotonic() > deadline:
                raise TierwiseError(
                    f"disk {self.entry.name!r}: its server does not start", "see tierwise doctor"
                )
            time.sleep(0.005)

    def _make_directories(self) -> None:
        wanted = {parent for point in self.mounts.values() for parent in (point, *point.parents)}
        missing = sorted(path for path in wanted if not path.exists())
        self.entry = self.entry.update(made=[str(path) for path in missing])
        for path in missing:
            path.mkdir(exist_ok=True)

    def _place(self, part: Partition, rotational: bool) -> dict[str, Any]:
        device = loop.attach(disk_teardown.fuse_directory(self._home) / f"{part.name}.img")
        loop.configure(device, rotational)
        mounts.make_file_system(part.fs, device)
        mounts.mount(device, self.mounts[part.name], part.fs)
        return {
            "name": part.name,
            "loop": str(device),
            "mount": str(self.mounts[part.name]),
            "file_system": part.fs,
            "size_bytes": part.size_bytes,
        }


def list_disks() -> list[DiskStats]:
    """Counters of every disk whose server answers, by name."""
    found = []
    for entry in ledger.entries("disk"):
        try:
            found.append(EmulatedDisk.find(entry.name).stats())
        except TierwiseError:
            continue
    return found
