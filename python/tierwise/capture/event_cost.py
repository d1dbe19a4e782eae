"""Measures the cost of one event on this machine, for the thread that triggers it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tierwise.host.tracing import Tracing

_CALLS = 5_000
_ROUNDS = 3
_LOOPS = 3
_BUFFER_KB = "64"


def measure_event_cpu_ns(tracing: Tracing) -> float:
    """CPU time of one event, in ns: a loop of cheap calls with one event at each entry and each exit.

    Rounds with and without tracing alternate. The fastest of each counts, as other load only adds time.
    The reader of the events is another thread, whose time is not included.
    """
    with tracing.made(f"{tracing.instance}-cost") as instance:
        (instance / "buffer_size_kb").write_text(_BUFFER_KB)
        (instance / "set_event_pid").write_text(str(threading.get_native_id()))
        switches = [
            instance / "events" / "syscalls" / f"sys_{way}_lseek" / "enable" for way in ("enter", "exit")
        ]
        if not all(switch.exists() for switch in switches):
            return 0.0
        plain_ns, traced_ns = [], []
        # Each switch stops all cores for a moment, so several loops run between two switches.
        for _ in range(_ROUNDS):
            plain_ns += [_loop_ns() for _ in range(_LOOPS)]
            _set(switches, "1")
            traced_ns += [_loop_ns() for _ in range(_LOOPS)]
            _set(switches, "0")
    return max(0.0, (min(traced_ns) - min(plain_ns)) / (2 * _CALLS))


def _set(switches: list[Path], value: str) -> None:
    for switch in switches:
        switch.write_text(value)


def _loop_ns() -> int:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        start = time.thread_time_ns()
        for _ in range(_CALLS):
            os.lseek(descriptor, 0, os.SEEK_CUR)
        return time.thread_time_ns() - start
    finally:
        os.close(descriptor)
