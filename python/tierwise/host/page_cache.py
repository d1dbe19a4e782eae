"""Files that are open or below a directory: what the page cache has of them, and how to make ours cold.

What other programs of the machine have in the page cache stays there, unless the user gives --drop-caches.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import ledger
from tierwise.host.disk import partitions
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.placement import Role
from tierwise.results.conditions import ColdStart, WarmFile

_DELETED = " (deleted)"


@dataclass(frozen=True)
class OpenFile:
    """A regular file, by the path that the kernel knows; ``device`` is its file system's device number."""

    path: Path
    device: int


def open_files(pids: Iterable[int]) -> Iterator[OpenFile]:
    """Every regular file open in these processes, once per descriptor; deleted ones by their last path.

    Files that close meanwhile are left out, and so are files that the caller may not see.
    """
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as descriptors:
                links = [entry.path for entry in descriptors]
        except OSError:
            continue
        for link in links:
            file = _open_file(Path(link))
            if file is not None:
                yield file


def _open_file(link: Path) -> OpenFile | None:
    try:
        path = str(link.readlink())
        status = link.stat() if path.startswith("/") else None
    except OSError:
        return None
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return OpenFile(Path(path.removesuffix(_DELETED)), status.st_dev)


def files_below(directories: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Files by their real paths, including linked directories: links place roles on other devices."""
    waiting, seen = [path.resolve() for path in directories], set[Path]()
    while waiting:
        directory = waiting.pop()
        if directory in seen:
            continue
        seen.add(directory)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir():
                    waiting.append(Path(entry.path).resolve())
                elif entry.is_file():
                    path = Path(entry.path).resolve()
                    yield path, path.stat()
            except OSError:
                continue


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
        return resident_bytes_of_open_file(descriptor) if regular else None
    finally:
        os.close(descriptor)


def resident_bytes_of_open_file(descriptor: int) -> int:
    """The same of an open file."""
    size_bytes = os.fstat(descriptor).st_size
    pages = _by_cachestat(descriptor)
    if pages is None:
        pages = _by_mincore(descriptor, size_bytes)
    return min(pages * _PAGE_BYTES, size_bytes)


def _by_cachestat(descriptor: int) -> int | None:
    """Cached pages, or ``None`` where the kernel lacks the call."""
    whole, counts = _Range(0, 0), _CacheStat()
    if _libc.syscall(CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0) != 0:
        return None
    return int(counts.cache)


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


WARM_BYTES = 64 << 10
"""A file with more than this in the page cache has stayed warm."""
_MOST_WARM_FILES = 5
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_OPENED_TO_DROP = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Directories = Iterable[tuple[Role, Path]]
"""Directories of one database, each with the role of its files."""


def write_out_dirty_pages(directories: Iterable[Path]) -> None:
    """Write the dirty pages of the file systems that hold ``directories``, and of no others."""
    libc = ctypes.CDLL(None, use_errno=True)
    for directory in {path.stat().st_dev: path for path in directories}.values():
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            if libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), "syncfs", str(directory))
        finally:
            os.close(descriptor)


def make_caches_cold(directories: Directories, *, drop_caches: bool = False) -> ColdStart:
    """Empty the caches of a database that is down, and check what stayed in them.

    An emulated disk of this process is unmounted and mounted again. On other file systems, and on a disk that
    is in use, the pages of the files are dropped; their inodes and the metadata of the file system stay.

    Args:
        drop_caches: drop the caches of the whole machine instead.

    Raises:
        HostError: if the caches of the whole machine may not be dropped, or a disk cannot be mounted again.
    """
    chosen = list(directories)
    write_out_dirty_pages(path for _, path in chosen)
    if drop_caches:
        _drop_caches()
        return _drop_and_check(ColdStart(dropped="whole machine"), chosen)
    remounted, busy = set[int](), dict[int, str]()
    with ledger.hold_lock():
        for device, partition in partitions.own_partitions(
            {path.stat().st_dev for _, path in chosen}
        ).items():
            try:
                partitions.remount_partition(partition)
                remounted.add(device)
            except HostError:
                raise
            except TierwiseError as error:
                busy[device] = error.message
                partitions.drop_cached_metadata([partition])
    devices = [(role, path, path.stat().st_dev) for role, path in chosen]
    cold = ColdStart(
        dropped="own files",
        remounted=sorted({role for role, _, device in devices if device in remounted}),
        not_remounted={role: busy[device] for role, _, device in devices if device in busy},
    )
    return _drop_and_check(cold, [(role, path) for role, path, device in devices if device not in remounted])


def drop_cached_pages(directories: Directories, *, drop_caches: bool = False) -> ColdStart:
    """Drop the cached pages of a database that may run, and its emulated disks' metadata; check what stayed.

    Args:
        drop_caches: drop the caches of the whole machine instead.
    """
    chosen = list(directories)
    write_out_dirty_pages(path for _, path in chosen)
    if drop_caches:
        _drop_caches()
        return _drop_and_check(ColdStart(dropped="whole machine"), chosen)
    cold = _drop_and_check(ColdStart(dropped="own files"), chosen)
    partitions.drop_cached_metadata(
        partitions.own_partitions({path.stat().st_dev for _, path in chosen}).values()
    )
    return cold


def require_drop_caches() -> None:
    """Refuse to drop the caches of the whole machine where the caller may not."""
    if not os.access(_DROP_CACHES, os.W_OK):
        raise HostError("--drop-caches: this user may not drop the caches of the machine", "leave it out")


def _drop_caches() -> None:
    require_drop_caches()
    _DROP_CACHES.write_text("3")


def _drop_and_check(cold: ColdStart, directories: Directories) -> ColdStart:
    """Drop the pages of files, and add those that stayed."""
    files = [
        WarmFile(role=role, file=file, resident_bytes=size_bytes)
        for role, directory in directories
        for file, size_bytes in _resident(directory)
    ]
    files.sort(key=lambda file: file.resident_bytes, reverse=True)
    warm = [file for file in files if file.resident_bytes > WARM_BYTES]
    total_bytes = sum(file.resident_bytes for file in files)
    return cold.changed(resident_bytes=total_bytes, warm=warm[:_MOST_WARM_FILES])


def _resident(directory: Path) -> Iterator[tuple[str, int]]:
    """Drop the pages of each file below a directory; give those that stayed, by the file's printable path.

    The database's account may write there, so no link is followed and no other file system entered.
    """
    device = directory.stat().st_dev
    for folder, _, names, at in os.fwalk(directory):
        for name in names:
            try:
                descriptor = os.open(name, _OPENED_TO_DROP, dir_fd=at)
            except OSError:
                continue  # a link, a file that is gone, or one that the caller may not read
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_dev != device:
                    continue
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                size_bytes = resident_bytes_of_open_file(descriptor)
            finally:
                os.close(descriptor)
            if size_bytes:
                yield ascii(str(Path(folder, name).relative_to(directory)))[1:-1], size_bytes
