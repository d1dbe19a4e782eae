"""Reports how much of a file is in the page cache."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
from pathlib import Path

CACHESTAT = 451
"""System call number, the same on every architecture; since Linux 6.5."""
_PAGE_BYTES = mmap.PAGESIZE
_WINDOW_BYTES = 1 << 30

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_MAP_FAILED = ctypes.c_void_p(-1).value


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _CacheStat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted")
    )


def resident_bytes(path: Path) -> int | None:
    """Bytes of a file in the page cache, in whole pages, at most its size; ``None`` if it cannot be read.

    A database's account may put a pipe in its place: opening it does not wait.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return resident_bytes_of(descriptor) if regular else None
    finally:
        os.close(descriptor)


def resident_bytes_of(descriptor: int) -> int:
    """The same of an open file."""
    size_bytes = os.fstat(descriptor).st_size
    pages = _by_cachestat(descriptor)
    if pages is None:
        pages = _by_mincore(descriptor, size_bytes)
    return min(pages * _PAGE_BYTES, size_bytes)


def _by_cachestat(descriptor: int) -> int | None:
    """Cached pages, or ``None`` where the kernel lacks the call."""
    whole, found = _Range(0, 0), _CacheStat()
    if _libc.syscall(CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
        return None
    return int(found.cache)


def _by_mincore(descriptor: int, size_bytes: int) -> int:
    """Cached pages, counted in consecutive windows of the file."""
    return sum(
        _window_by_mincore(descriptor, start, min(_WINDOW_BYTES, size_bytes - start))
        for start in range(0, size_bytes, _WINDOW_BYTES)
    )


def _window_by_mincore(descriptor: int, start: int, length: int) -> int:
    address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, start)
    if address == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), "mmap"))
    try:
        flags = ctypes.create_string_buffer(-(-length // _PAGE_BYTES))
        if _libc.mincore(address, length, flags) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(flag & 1 for flag in flags.raw)
    finally:
        _libc.munmap(address, length)
