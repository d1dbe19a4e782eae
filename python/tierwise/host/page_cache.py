"""The kernel's page cache, made cold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def drop(directories: Iterable[Path]) -> None:
    """Write all dirty pages to their devices, then forget what was cached of the files in ``directories``.

    Root forgets everything, of every file: also directories, inodes and the file system's own blocks. Another
    caller can only ask for the pages of files that he may open.
    """
    os.sync()
    if os.access(_DROP_CACHES, os.W_OK):
        _DROP_CACHES.write_text("3")
        return
    for directory in directories:
        for path in directory.rglob("*"):
            if path.is_file() and not path.is_symlink():
                _forget(path)


def _forget(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
