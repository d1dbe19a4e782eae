"""What one event costs the thread that it happens to, measured here and now."""

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
    """Processor time of one event, in ns: a loop of cheap calls, each an event on the way in and one out.

    Rounds with and without tracing take turns; the fastest of each count, as others can only slow them down.
    Who reads the events is another thread, and no part of this.
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
        # Each switch stops all cores for a moment: so several loops between two.
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
