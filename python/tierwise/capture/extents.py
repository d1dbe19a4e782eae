"""Location of a file's blocks on its device, from the file system (ioctl FS_IOC_FIEMAP)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tierwise import _core

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
    return _core.file_extents(path)
