"""A fixed workload before and after each run, which detects a disturbed machine."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tierwise.results.measurements import Record
from tierwise.validation.spec import Control

_BLOCK = bytes(1 << 20)
"""Block size above which hashing releases the interpreter lock."""
_SYNC_BYTES = 4096
_FILE = "control"


class Reading(Record):
    """One result of the control workload."""

    cpu_per_s: float
    """MiB hashed a second by the slowest core, with all cores at work."""
    sync_per_s: float
    """Synced writes of 4 KiB a second."""


def read(control: Control, place: Path) -> Reading:
    """Run the control workload once: each core computes, then one thread writes to ``place``."""
    return Reading(cpu_per_s=_cpu(control.cpu_s), sync_per_s=_sync(control.sync_s, place))


def slower(
    mine: Sequence[Reading],
    everywhere: Sequence[Reading],
    here: Sequence[Reading],
    control: Control,
) -> str | None:
    """Why the readings around a run require a repeat; ``None`` if they are normal or better.

    Args:
        mine: readings before and after the run.
        everywhere: earlier readings of the round, on any storage, for the processor rate.
        here: earlier readings on the same storage.
        control: the declared bounds.
    """
    for name, earlier, bound in (
        ("cpu", everywhere, control.cpu_slower),
        ("sync", here, control.sync_slower),
    ):
        if not mine or len(earlier) < control.fewest:
            continue
        usual = median(getattr(one, f"{name}_per_s") for one in earlier)
        off = min(getattr(one, f"{name}_per_s") for one in mine) / usual - 1
        if off < -bound:
            return f"the control workload's {name} was {-off:.1%} below the round's median"
    return None


def _cpu(seconds: float) -> float:
    cores = sorted(os.sched_getaffinity(0))
    rates = [0.0] * len(cores)
    threads = [
        threading.Thread(target=_hash, args=(core, seconds, rates, at)) for at, core in enumerate(cores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return min(rates)


def _hash(core: int, seconds: float, rates: list[float], at: int) -> None:
    os.sched_setaffinity(0, {core})
    began_s = time.monotonic()
    done = 0
    while (spent_s := time.monotonic() - began_s) < seconds:
        hashlib.sha256(_BLOCK)
        done += 1
    rates[at] = done / spent_s


def _sync(seconds: float, place: Path) -> float:
    """Overwrite one block of an existing file, so that no metadata is written."""
    file = place / _FILE
    block = os.urandom(_SYNC_BYTES)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.pwrite(descriptor, block, 0)
        os.fsync(descriptor)
        began_s = time.monotonic()
        done = 0
        while time.monotonic() < began_s + seconds:
            os.pwrite(descriptor, block, 0)
            os.fdatasync(descriptor)
            done += 1
        return done / (time.monotonic() - began_s)
    finally:
        os.close(descriptor)
        file.unlink()
