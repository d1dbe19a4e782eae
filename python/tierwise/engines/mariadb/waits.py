"""What a MariaDB session waits for: what the kernel shows of its thread, and what state the server gives it.

Each session has a thread of its own, whose id the server tells. Its system call says whether it runs, reads,
writes, syncs, or waits for its client, at no cost to the server. Whether a thread that waits for another one
waits for a flush of the log or for a lock, the server knows: it is asked when there is such a thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql

from tierwise.engines.mariadb.server import CLIENT
from tierwise.engines.thread_waits import SESSIONS_MAX, RoleOf, ThreadWaitProbe
from tierwise.host.cpu import thread_cpu_s
from tierwise.results.counters import WaitClass

_THREADS = f"SELECT id, tid FROM information_schema.processlist WHERE user = '{CLIENT}'"
_OWN_THREAD = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()"
_REFRESH_S = 0.5
"""The server makes a temporary table for each look at the threads: too much for every tick."""

_COMMITS = frozenset(
    {
        "Closing tables",
        "Commit",
        "End of update loop",
        "Freeing items",
        "Query end",
        "Reset for next command",
        "Unlocking tables",
        "Updating status",
        "Waiting for prior transaction to commit",
        "Writing to net",
    }
)
"""States after the last lock was asked for. A commit ends its statement before its part of the log is
flushed, and waits for that only then: mostly in ``Updating status``."""


class MariadbWaitProbe(ThreadWaitProbe):
    """Looks at the threads of the load's sessions, at 50 of them at most."""

    def __init__(self, pid: int, role_of: RoleOf, connect: Callable[[], pymysql.Connection[Any]]) -> None:
        """Connect; the sampled sessions need not exist yet."""
        super().__init__([pid], role_of, lambda: 0)
        self._pid = pid
        self._connection = connect()
        self._own_tid = int(self._query(_OWN_THREAD)[0][0])
        self._threads: dict[int, Path] = {}
        self._refresh_at_s = 0.0

    def sample(self, delay_s: float) -> list[WaitClass]:
        """Sleep, look at one thread after the other, then ask about those that wait for another."""
        if time.monotonic() >= self._refresh_at_s:
            self._find_threads()
        self._sleep(delay_s)
        if not self._tasks[0].exists():
            raise ProcessLookupError(f"process {self._pid} is gone")
        sessions = list(self._threads)
        if len(sessions) > SESSIONS_MAX:
            sessions = self._random.sample(sessions, SESSIONS_MAX)
        seen = {session: self._class_of(self._threads[session]) for session in sessions}
        if "lock" in seen.values():
            seen |= self._behind_the_log([session for session, kind in seen.items() if kind == "lock"])
        return [kind for kind in seen.values() if kind is not None]

    def cpu_s(self) -> float:
        """CPU seconds of the thread behind the connection."""
        return thread_cpu_s(self._pid, self._own_tid) or 0.0

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(pymysql.MySQLError):
            self._connection.close()

    def _find_threads(self) -> None:
        self._threads = {session: self._tasks[0] / str(tid) for session, tid in self._query(_THREADS)}
        self._refresh_at_s = time.monotonic() + _REFRESH_S

    def _behind_the_log(self, waiting: list[int]) -> dict[int, WaitClass]:
        """Those of the sessions that commit: what they wait for is another one's flush."""
        states = {session: state for session, *_, state, _info, _progress in self._query("SHOW PROCESSLIST")}
        return {session: "log_lock" for session in waiting if states.get(session) in _COMMITS}

    def _query(self, sql: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
