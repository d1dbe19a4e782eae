"""Latency of a request through loop device and FUSE while the server answers at once."""

from __future__ import annotations

import mmap
import os
import statistics
import time
from pathlib import Path

_READS = 300
_BLOCK_BYTES = 4096

BLOCK_LAYER_US = 3.0
"""Host time of a read on a real device, outside the device; not part of the path latency."""

_LEAST_US, _MOST_US = 0.0, 60.0


def measure_path_us(device: Path) -> float:
    """Latency that the path adds, in µs: the lower quartile of single direct reads of an untimed disk.

    The lower quartile excludes interference, because other load can only add latency.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, _BLOCK_BYTES) as buffer:
            times_us = [_read_us(descriptor, buffer, number * _BLOCK_BYTES) for number in range(_READS)]
    finally:
        os.close(descriptor)
    added_us = statistics.quantiles(times_us, n=4)[0] - BLOCK_LAYER_US
    return min(max(added_us, _LEAST_US), _MOST_US)


def _read_us(descriptor: int, buffer: mmap.mmap, offset: int) -> float:
    start = time.perf_counter_ns()
    os.preadv(descriptor, [buffer], offset)
    return (time.perf_counter_ns() - start) / 1e3
