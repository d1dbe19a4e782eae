"""Location of a file's blocks on its device, from the file system (ioctl FS_IOC_FIEMAP)."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from pathlib import Path

from tierwise.model.units import SECTOR_BYTES

_FS_IOC_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQLLLL")
_EXTENT = struct.Struct("=QQQQQLLLL")
_AT_ONCE = 256
_WHOLE_FILE = 2**64 - 1
_LAST = 0x1
_UNPLACED = 0x2 | 0x4 | 0x8 | 0x200
"""Unknown, delayed allocation, encoded, or inline data: no location of its own."""

Extent = tuple[int, int, int]
"""First sector on the file system's device, number of sectors, and offset in the file in bytes."""

_PLACED_WITHIN_S = 60.0
"""Time after the last write within which the kernel has allocated all blocks of a file."""


class KnownExtents:
    """Cached extents by file; a file not written since its last query is not queried again."""

    def __init__(self) -> None:
        """Start empty."""
        self._placed: dict[Path, tuple[tuple[float, ...], list[Extent]]] = {}

    def of(self, path: Path, status: os.stat_result) -> list[Extent]:
        """Extents of a file with the given current status."""
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime)
        known = self._placed.get(path)
        if known is not None and known[0] == state:
            return known[1]
        extents = extents_of(path)
        if time.time() - status.st_mtime > _PLACED_WITHIN_S:
            self._placed[path] = (state, extents)
        return extents


def extents_of(path: Path) -> list[Extent]:
    """Extents of a file in order of their offsets; empty where the file system reports none.

    Dirty pages without a location are left out; they are not flushed for this.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOATIME)
    except OSError:
        return []
    try:
        return _ask(descriptor)
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _ask(descriptor: int) -> list[Extent]:
    found: list[Extent] = []
    start = 0
    while True:
        request = bytearray(_HEADER.size + _AT_ONCE * _EXTENT.size)
        _HEADER.pack_into(request, 0, start, _WHOLE_FILE - start, 0, 0, _AT_ONCE, 0)
        fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, request)
        mapped = _HEADER.unpack_from(request)[3]
        for number in range(mapped):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(
                request, _HEADER.size + number * _EXTENT.size
            )
            if not flags & _UNPLACED:
                found.append((physical // SECTOR_BYTES, length // SECTOR_BYTES, logical))
            start = logical + length
            if flags & _LAST:
                return found
        if mapped < _AT_ONCE:
            return found
