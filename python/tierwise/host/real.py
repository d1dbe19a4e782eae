"""A real device: a directory on a mounted file system, with the kernel's I/O counters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import RoleIo


@dataclass(frozen=True)
class RealDevice:
    """The block device under ``path``. The kernel counts the I/O of all its users, not only this run's."""

    name: str
    path: Path

    def counters(self) -> DiskCounters | None:
        """The device's totals since boot, or ``None`` where the file system has no block device."""
        number = self.path.stat().st_dev
        stat = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        return DiskCounters.parse(stat.read_text("ascii")) if stat.exists() else None


@dataclass(frozen=True)
class DiskCounters:
    """The block layer statistics that tierwise uses (Documentation/block/stat.rst)."""

    reads: int
    read_bytes: int
    read_ms: int
    writes: int
    write_bytes: int
    write_ms: int
    busy_ms: int
    queued_ms: int
    discards: int
    flushes: int

    @classmethod
    def parse(cls, text: str) -> DiskCounters:
        """Read one ``stat`` file; kernels before 5.5 count no flushes, before 4.18 no discards."""
        field = [int(word) for word in text.split()] + [0] * 6
        return cls(
            reads=field[0],
            read_bytes=field[2] * SECTOR_BYTES,
            read_ms=field[3],
            writes=field[4],
            write_bytes=field[6] * SECTOR_BYTES,
            write_ms=field[7],
            busy_ms=field[9],
            queued_ms=field[10],
            discards=field[11],
            flushes=field[15],
        )

    def since(self, before: DiskCounters, device: str, elapsed_s: float) -> RoleIo:
        """I/O between two readings that are ``elapsed_s`` seconds apart."""
        return RoleIo(
            device=device,
            reads=self.reads - before.reads,
            writes=self.writes - before.writes,
            flushes=self.flushes - before.flushes,
            discards=self.discards - before.discards,
            read_bytes=self.read_bytes - before.read_bytes,
            write_bytes=self.write_bytes - before.write_bytes,
            busy_s=(self.busy_ms - before.busy_ms) / 1000,
            queue_depth_mean=(self.queued_ms - before.queued_ms) / 1000 / elapsed_s if elapsed_s else None,
        )


def open_real_device(name: str, path: str) -> RealDevice:
    """The device under a directory that the user named.

    Raises:
        TierwiseError: if the directory does not exist or cannot be written.
    """
    directory = Path(path)
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise TierwiseError(
            f"devices.{name}.path: {path} is not a writable directory",
            "name a mounted directory you may write",
        )
    return RealDevice(name, directory)
