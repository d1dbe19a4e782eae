"""Waits of an engine's threads from the kernel, for engines that do not report waits.

A running thread is seen by its state; a waiting thread by its system call and the file of the
call. This works on any library in any process that the caller may trace.
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from pathlib import Path

from tierwise.model.placement import Role
from tierwise.results.measurements import WaitClass


class SystemCallEffect(Enum):
    """Effect of a system call, for a wait profile."""

    READ = auto()
    WRITE = auto()
    SYNC = auto()
    LOCK = auto()
    """Of a file."""
    FUTEX = auto()
    SLEEP = auto()
    POLL = auto()


_PROCESSORS = ("x86_64", "aarch64")
_SYSTEM_CALLS: Mapping[SystemCallEffect, Mapping[str, tuple[int, int | None]]] = {
    SystemCallEffect.READ: {
        "read": (0, 63),
        "pread64": (17, 67),
        "readv": (19, 65),
        "preadv": (295, 69),
        "preadv2": (327, 286),
    },
    SystemCallEffect.WRITE: {
        "write": (1, 64),
        "pwrite64": (18, 68),
        "writev": (20, 66),
        "pwritev": (296, 70),
        "pwritev2": (328, 287),
        "truncate": (76, 45),
        "ftruncate": (77, 46),
        "fallocate": (285, 47),
    },
    SystemCallEffect.SYNC: {"fsync": (74, 82), "fdatasync": (75, 83), "sync_file_range": (277, 84)},
    SystemCallEffect.LOCK: {"fcntl": (72, 25), "flock": (73, 32)},
    SystemCallEffect.FUTEX: {"futex": (202, 98)},
    SystemCallEffect.SLEEP: {"nanosleep": (35, 101), "clock_nanosleep": (230, 115)},
    SystemCallEffect.POLL: {
        "poll": (7, None),
        "select": (23, None),
        "pselect6": (270, 72),
        "ppoll": (271, 73),
        "epoll_wait": (232, None),
        "epoll_pwait": (281, 22),
    },
}
"""Number of each call on these processors; ``None`` on one that has no such call."""
NUMBERS: Mapping[str, Mapping[SystemCallEffect, Mapping[str, int]]] = {
    processor: {
        call: {name: number for name, numbers in named.items() if (number := numbers[at]) is not None}
        for call, named in _SYSTEM_CALLS.items()
    }
    for at, processor in enumerate(_PROCESSORS)
}
"""By processor, as ``uname -m`` names it. A test compares them with the kernel's headers."""

_HERE = NUMBERS.get(platform.machine(), {})
CALLS = {number: call for call, numbers in _HERE.items() for number in numbers.values()}
"""Class of each call number that is listed; empty on an unknown processor."""


CLIENT_THREAD = "tierwise-client"
"""Name of the threads that run clients, which distinguishes them from a library's own."""

SESSIONS_MAX = 50
_LOGS = frozenset({Role.LOG, Role.DOUBLEWRITE, Role.ARCHIVE})
_PRIORITY = 1

_ELSEWHERE: Mapping[SystemCallEffect | None, WaitClass] = {
    SystemCallEffect.FUTEX: "lock",
    # A library sleeps until it retries a lock that another client holds.
    SystemCallEffect.SLEEP: "lock",
    SystemCallEffect.POLL: "client",
}
_ON_FILES = frozenset(
    {SystemCallEffect.READ, SystemCallEffect.WRITE, SystemCallEffect.SYNC, SystemCallEffect.LOCK}
)

_WORK = frozenset({"cpu", "log_sync", "data_read", "data_write"})

RoleOf = Callable[[Path], Role | None]


class ThreadWaitProbe:
    """Inspects the threads named :data:`CLIENT_THREAD` of some processes, at most 50 sessions."""

    def __init__(
        self,
        pids: Sequence[int],
        role_of: RoleOf,
        sessions: Callable[[], int],
        *,
        helped: bool = False,
    ) -> None:
        """Prepare; the threads need not exist yet.

        Args:
            role_of: role of a file of the engine.
            sessions: gives the number of open sessions. A session without a thread is idle.
            helped: whether the library also runs a client's statement on its own threads. A client that waits
                for another thread then counts as waiting where most of these threads wait.
        """
        self._tasks = [Path(f"/proc/{pid}/task") for pid in pids]
        self._role_of = role_of
        self._sessions = sessions
        self._helped = helped
        self._random = random.Random(0)
        self._ahead = False

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        """Sleep, then look at one thread after the other.

        The calling thread asks for a real-time priority. Otherwise it would run only when a client leaves a
        processor, and would see almost no client running.

        Raises:
            OSError: if a process is gone.
        """
        self._sleep(delay_s)
        clients, others = client_and_other_threads(self._tasks)
        idle = max(0, self._sessions() - len(clients))
        looked_at = [*clients, *[None] * idle]
        if len(looked_at) > SESSIONS_MAX:
            looked_at = self._random.sample(looked_at, SESSIONS_MAX)
        classes = ["client" if thread is None else self._class_of(thread) for thread in looked_at]
        seen = [kind for kind in classes if kind is not None]
        if self._helped:
            return self._seen_through_helpers(seen, others)
        # Group commit: while a client flushes, waits for another client are waits for its flush of the log.
        return ["log_lock" if kind == "lock" else kind for kind in seen] if "log_sync" in seen else seen

    def _sleep(self, delay_s: float) -> None:
        if not self._ahead:
            self._ahead = True
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        time.sleep(delay_s)

    def cpu_s(self) -> float:
        """Zero: sampling costs the engine no CPU time."""
        return 0.0

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _class_of(self, thread: Path) -> WaitClass | None:
        """The class of one thread; ``None`` if it has just ended."""
        try:
            fields = (thread / "syscall").read_text().split()
        except OSError:
            return None
        if fields[0] == "running":
            return "cpu"
        if fields[0] == "-1":
            # Blocked outside any call: a page fault on a mapped file.
            return "data_read"
        call = CALLS.get(int(fields[0]))
        if call in _ON_FILES:
            return self._class_of_file(call, thread, int(fields[1], 16))
        return _ELSEWHERE.get(call, "other")

    def _class_of_file(self, call: SystemCallEffect | None, thread: Path, descriptor: int) -> WaitClass:
        try:
            path = Path((thread / "fd" / str(descriptor)).readlink())
        except OSError:
            return "other"
        role = self._role_of(path)
        if role is None:
            return "other"
        if call is SystemCallEffect.LOCK:
            return "lock"
        if call is SystemCallEffect.READ:
            return "data_read"
        return "log_sync" if role in _LOGS else "data_write"

    def _seen_through_helpers(self, seen: list[WaitClass], others: Sequence[Path]) -> list[WaitClass]:
        """Replace waits for other threads by the most frequent state of those threads."""
        if "lock" not in seen:
            return seen
        busy = Counter(kind for kind in map(self._class_of, others) if kind in _WORK)
        instead: WaitClass = busy.most_common(1)[0][0] if busy else "other"
        return [instead if kind == "lock" else kind for kind in seen]


def client_and_other_threads(tasks: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Threads that run clients, and all others."""
    clients: list[Path] = []
    others: list[Path] = []
    for thread in (Path(entry.path) for task in tasks for entry in os.scandir(task)):
        with contextlib.suppress(OSError):
            name = (thread / "comm").read_text("utf-8", "replace")
            (clients if name.startswith(CLIENT_THREAD) else others).append(thread)
    return clients, others
