"""Waits of an engine's threads as the kernel shows them, for engines that cannot tell themselves.

A thread that runs is seen in its state; one that waits, in the system call that it is in and the file that
the call is for. So this works on any library in any process that the caller may trace.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tierwise.counters import WaitClass
from tierwise.engines.system_calls import Call, call_of
from tierwise.roles import Role

CLIENT_THREAD = "tierwise-client"
"""Name of the threads that run clients, by which they are found among a library's own."""

_THREADS_MAX = 50
_LOGS = frozenset({Role.LOG, Role.DOUBLEWRITE, Role.ARCHIVE})
_PRIORITY = 1

_ON_FILES = frozenset({Call.READ, Call.WRITE, Call.SYNC, Call.LOCK})

RoleOf = Callable[[Path], Role | None]


class ThreadWaitProbe:
    """Looks at the threads named :data:`CLIENT_THREAD` of some processes, at 50 of them at most."""

    def __init__(
        self, pids: Sequence[int], role_of: RoleOf, *, on_futex: WaitClass = "lock", seed: int = 0
    ) -> None:
        """Prepare; the threads need not exist yet.

        Args:
            pids: processes to look into.
            role_of: role of a file of the engine.
            on_futex: class of a thread that waits for another one.
        """
        self._tasks = [Path(f"/proc/{pid}/task") for pid in pids]
        self._role_of = role_of
        self._elsewhere: dict[Call | None, WaitClass] = {
            Call.FUTEX: on_futex,
            # A library that sleeps does so until it tries again to get what another client holds.
            Call.SLEEP: "lock",
            Call.POLL: "client",
        }
        self._random = random.Random(seed)
        self._ahead = False

    def sample(self, delay_s: float) -> list[WaitClass]:
        """Sleep, then look at one thread after the other.

        The calling thread asks for a real-time priority. Else it would get a processor only when a client
        leaves one, and would see next to none of them running.

        Raises:
            OSError: if a process is gone.
        """
        if not self._ahead:
            self._ahead = True
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        time.sleep(delay_s)
        threads = [thread for task in self._tasks for thread in _client_threads(task)]
        if len(threads) > _THREADS_MAX:
            threads = self._random.sample(threads, _THREADS_MAX)
        classes = [self._class_of(thread) for thread in threads]
        return _waits_for_a_leader([seen for seen in classes if seen is not None])

    def cpu_s(self) -> float:
        """Nothing: the engine does not notice."""
        return 0.0

    def close(self) -> None:
        """Nothing to give back."""

    def _class_of(self, thread: Path) -> WaitClass | None:
        """The class of one thread; ``None`` if it has just ended."""
        try:
            told = (thread / "syscall").read_text().split()
        except OSError:
            return None
        if told[0] == "running":
            return "cpu"
        if told[0] == "-1":
            # Blocked outside any call: the page of a mapped file is on its way.
            return "data_read"
        call = call_of(int(told[0]))
        if call in _ON_FILES:
            return self._class_of_file(call, thread, int(told[1], 16))
        return self._elsewhere.get(call, "other")

    def _class_of_file(self, call: Call | None, thread: Path, descriptor: int) -> WaitClass:
        try:
            path = Path((thread / "fd" / str(descriptor)).readlink())
        except OSError:
            return "other"
        role = self._role_of(path)
        if role is None:
            return "other"
        if call is Call.LOCK:
            return "lock"
        if call is Call.READ:
            return "data_read"
        return "log_sync" if role in _LOGS else "data_write"


def _client_threads(task: Path) -> list[Path]:
    found = []
    for thread in os.scandir(task):
        with contextlib.suppress(OSError):
            name = Path(thread.path, "comm").read_bytes()
            if name.startswith(CLIENT_THREAD.encode()):
                found.append(Path(thread.path))
    return found


def _waits_for_a_leader(classes: list[WaitClass]) -> list[WaitClass]:
    """Clients that wait for another one while one flushes the log wait for that flush: a group commits."""
    if "log_sync" not in classes:
        return classes
    return ["log_lock" if seen == "lock" else seen for seen in classes]
