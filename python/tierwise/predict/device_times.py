"""Times of single requests on a device, by its model: what a wait for it would take."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.simulation import Job, Simulation, simulate_core

Access = Literal["randread", "randwrite", "seqread", "seqwrite"]

_REQUESTS = 1000
"""Simulated requests behind a time: its mean is then within 3 % of the model's own."""
_KIB = 1024
_MOST_FLUSHED = 1 << 20
_KINDS = ("hdd", "ssd", "volume")
"""Kinds of a device that a database may lie on; arrays have the reads of their members."""


def flush_us(core: _core.Profile, appended_bytes: float, *, worn: bool) -> float:
    """Mean time of one append to the log and the flush after it, one at a time, in µs.

    Args:
        core: profile of the device.
        appended_bytes: log of one flush; rounded up to a power of two of KiB.
        worn: whether the device is in the state of long use.
    """
    size = min(_power_of_two(max(appended_bytes, _KIB)), _MOST_FLUSHED)
    result = _simulated(core, f"log-append-{size // _KIB}k", worn)
    writes = result.ops["write"].count
    return result.virtual_s * 1e6 / writes


def request_us(core: _core.Profile, access: Access, size_bytes: int, depth: float, *, worn: bool) -> float:
    """Mean time of a request with ``depth`` outstanding, its queue on the device included, in µs.

    Between powers of two of ``depth`` it is interpolated.
    """
    worn = worn and access.endswith("write")  # reads take as long, and wearing a model in takes a second
    below = 1 << int(math.log2(max(depth, 1.0)))
    pattern = f"{access}-{size_bytes // _KIB}k-qd"
    low_us = _simulated(core, f"{pattern}{below}", worn).mean_us
    if depth <= below:
        return low_us
    high_us = _simulated(core, f"{pattern}{2 * below}", worn).mean_us
    return low_us + (high_us - low_us) * (depth / below - 1)


@lru_cache
def extremes_us(access: Access, size_bytes: int) -> tuple[float, float]:
    """The shortest and the longest time of a request over the shipped devices, new and without a queue."""
    devices = [profiles.load(name) for name in profiles.names()]
    times = [
        request_us(device.core, access, size_bytes, 1, worn=False)
        for device in devices
        if device.kind in _KINDS
    ]
    return min(times), max(times)


@lru_cache(maxsize=1024)
def _simulated(core: _core.Profile, pattern: str, worn: bool) -> Simulation:
    return simulate_core(
        core, Job(preset=pattern, count=_REQUESTS, precondition="random" if worn else "fresh")
    )


def _power_of_two(number: float) -> int:
    return 1 << math.ceil(math.log2(number))
