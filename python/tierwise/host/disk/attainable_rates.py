"""What this machine attains of an emulated device: its rates by depth, and the latency of the path to it.

The path is measured where requests come one at a time, and subtracted from the model's times. Beyond that, a
request takes longer than the model says where processors are busy: by depth. Reads are measured. A write is
assumed to be longer by the same time as a read at its depth, because both take the same path. It is not
measured, since it would change the device's state.
"""

from __future__ import annotations

import json
import mmap
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tierwise import _core
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile, ProfileTexts, profile_texts_of
from tierwise.host.disk.partitions import is_rotational
from tierwise.results import AttainableRate

_READS = 300
_PAUSE_S = 1e-4
_BLOCK_BYTES = 4096

BLOCK_LAYER_US = 3.0
"""Host time of a read on a real device, outside the device; not part of the path latency."""

_LEAST_US, _MOST_US = 0.0, 100.0


def measure_path_latency_us(device: Path) -> float:
    """Latency that the path adds, in µs: the lower quartile of single direct reads of an untimed disk.

    The lower quartile excludes interference, because other load can only add latency. Between two reads lies
    a pause: while a device works, threads and processors fall asleep.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, _BLOCK_BYTES) as buffer:
            times_us = []
            for number in range(_READS):
                time.sleep(_PAUSE_S)
                times_us.append(_read_us(descriptor, buffer, number * _BLOCK_BYTES))
    finally:
        os.close(descriptor)
    added_us = statistics.quantiles(times_us, n=4)[0] - BLOCK_LAYER_US
    return min(max(added_us, _LEAST_US), _MOST_US)


def paced_path_latency_us(
    profile: DeviceProfile, device: Path, path_us: float, set_path: Callable[[float], None]
) -> float:
    """Path latency at the model's pace, in µs: between requests threads and processors fall asleep.

    By what the mean time of reads, one at a time, is longer than the model's, the compensation grows, twice:
    then the mean is right, unless the device is faster than its path. One whose times vary by more than the
    path is long (one that rotates) keeps ``path_us``.

    Args:
        device: its block device, timed, on which nothing else runs.
        path_us: latency of single reads without timing, which is compensated now.
        set_path: compensates for another latency.
    """
    model_per_s = 0.0 if is_rotational(profile) else _model_per_s(profile, "read", 1)
    if model_per_s <= 0:
        return path_us
    model_us = 1e6 / model_per_s
    for _ in range(_ROUNDS):
        live_us = 1e6 / _reads_per_s(device, [1])[1]
        # Where the path is longer than the device's time, all requests are answered at once.
        path_us = live_us if path_us >= model_us else path_us + live_us - model_us
        path_us = min(max(path_us, _LEAST_US), _MOST_US)
        set_path(path_us)
    return path_us


def _read_us(descriptor: int, buffer: mmap.mmap, offset: int) -> float:
    start = time.perf_counter_ns()
    os.preadv(descriptor, [buffer], offset)
    return (time.perf_counter_ns() - start) / 1e3


DEPTHS = (1, 2, 4, 8, 16, 32)
_ROUNDS = 2
_READ_FOR_S = 0.07
"""Some hundreds of reads of the slowest device that is measured."""
_MODELLED = 5_000
"""Requests that the model serves for a rate."""

_measured: dict[ProfileTexts, list[AttainableRate]] = {}
"""By profile and those that it refers to: a study has many disks of one."""


def attainable_rates(profile: DeviceProfile, device: Path) -> list[AttainableRate]:
    """Measure random reads of 4 KiB by depth, once in a process for each profile.

    None of a hard disk, whose times are far above the path's, and of a device that answers at once.
    """
    texts = profile_texts_of(profile.core)
    if texts not in _measured:
        _measured[texts] = [] if is_rotational(profile) else _measure(profile, device)
    return _measured[texts]


def _measure(profile: DeviceProfile, device: Path) -> list[AttainableRate]:
    models = {(op, depth): _model_per_s(profile, op, depth) for op in ("read", "write") for depth in DEPTHS}
    if not all(models.values()):
        return []
    here = _reads_per_s(device, DEPTHS)
    longer_s = {depth: max(depth / here[depth] - depth / models["read", depth], 0.0) for depth in DEPTHS}
    return [
        AttainableRate.model_validate(
            {
                "op": op,
                "depth": depth,
                "model_per_s": round(model_per_s),
                "here_per_s": round(depth / (depth / model_per_s + longer_s[depth])),
            }
        )
        for (op, depth), model_per_s in models.items()
    ]


def _reads_per_s(device: Path, depths: Sequence[int]) -> dict[int, float]:
    target = _core.ProbeTarget.open_to_read(str(device))
    try:
        return {depth: _read_per_s(target, depth) for depth in depths}
    finally:
        target.close()


def _read_per_s(target: _core.ProbeTarget, depth: int) -> float:
    measured: dict[str, float] = json.loads(target.measure(_pattern("read", depth), _READ_FOR_S, 0))
    return max(measured["requests"], 1) / measured["elapsed_s"]


def _model_per_s(profile: DeviceProfile, op: str, depth: int) -> float:
    return simulate_job(profile, SimulationJob(preset=_pattern(op, depth), count=_MODELLED)).iops


def _pattern(op: str, depth: int) -> str:
    return f"rand{op}-4k" + (f"-qd{depth}" if depth > 1 else "")
