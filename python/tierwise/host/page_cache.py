"""Writes out or drops the kernel's page cache."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def write_out(directories: Iterable[Path]) -> None:
    """Write the dirty pages of the file systems that hold ``directories``, and of no others."""
    libc = ctypes.CDLL(None, use_errno=True)
    for directory in {path.stat().st_dev: path for path in directories}.values():
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            if libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), "syncfs", str(directory))
        finally:
            os.close(descriptor)


def drop(directories: Iterable[Path]) -> None:
    """Write out the dirty pages, then drop the cached pages of files in ``directories``.

    As root, drop the caches of all files, including directories, inodes and file system metadata. Any other
    caller can only drop the pages of files that he may open.
    """
    chosen = list(directories)
    write_out(chosen)
    if os.access(_DROP_CACHES, os.W_OK):
        _DROP_CACHES.write_text("3")
        return
    for path in (path for directory in chosen for path in directory.rglob("*")):
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
