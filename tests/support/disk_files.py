"""Files and sectors of an emulated disk, read and written past what the kernel caches."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tierwise.host.disk.disk import EmulatedDisk


def write_without_flush(descriptor: int, data: bytes, offset: int) -> None:
    """Write to the device and wait until it has completed, but send no flush."""
    os.pwrite(descriptor, data, offset)
    wait, write = 1 | 4, 2
    libc = ctypes.CDLL(None, use_errno=True)
    status = libc.sync_file_range(
        descriptor, ctypes.c_int64(offset), ctypes.c_int64(len(data)), ctypes.c_uint(wait | write)
    )
    assert status == 0, os.strerror(ctypes.get_errno())


def flushed_file(directory: Path, data: bytes) -> int:
    descriptor = os.open(directory / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, data, 0)
    os.fsync(descriptor)
    return descriptor


def read_sector(disk: EmulatedDisk, partition: str, sector: int) -> bytes:
    """Read 4 KiB from the block device, past every cache."""
    descriptor = os.open(disk.stats().partitions[partition].device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 4096) as buffer:
            os.preadv(descriptor, [buffer], sector * 512)
            return bytes(buffer)
    finally:
        os.close(descriptor)


def error_of(action: Callable[[], object]) -> int | None:
    try:
        action()
    except OSError as error:
        return error.errno
    return None


def append(path: Path, count: int, summary: Callable[[Iterable[float]], float] = statistics.median) -> float:
    """Median time of an append of 8 KiB with a flush, to a file that has its blocks; in ms.

    From end to end: who ends one late has the next one that much sooner, and the median stays where it was.
    """
    with path.open("wb") as file:
        file.write(bytes(8192 * count))
        os.fsync(file.fileno())
    descriptor = os.open(path, os.O_WRONLY)
    ends_ms = [time.monotonic() * 1e3]
    for number in range(count):
        os.pwrite(descriptor, b"x" * 8192, 8192 * number)
        os.fdatasync(descriptor)
        ends_ms.append(time.monotonic() * 1e3)
    os.close(descriptor)
    return summary(end - before for before, end in itertools.pairwise(ends_ms))
