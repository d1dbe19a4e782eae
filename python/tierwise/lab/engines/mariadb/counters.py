"""MariaDB's counters, and the waits of its sessions, under the names that all engines share.

Each session has its own thread, whose id the server reports. Its system call shows whether it runs, reads,
writes, syncs, or waits for its client, at no cost to the server. If a thread waits for another thread, the
server is asked whether it waits for a log flush or for a lock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tierwise.capture.mysql_session import COMMITS
from tierwise.host.cpu import thread_cpu_s
from tierwise.lab.engines.mariadb.server import CLIENT
from tierwise.lab.engines.thread_waits import SESSIONS_MAX, RoleOf, ThreadWaitProbe
from tierwise.model.extras import pymysql
from tierwise.results.measurements import Counters, WaitClass

_STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb%'"
_COMMITS = """
    SELECT count FROM information_schema.innodb_metrics
    WHERE name IN ('trx_rw_commits', 'trx_ro_commits', 'trx_nl_ro_commits')
"""
Query = Callable[[str], list[Any]]


def read_counters(query: Query, cpu_s: float | None) -> Counters:
    """One reading. Logical reads are requests to the buffer pool; a page may be requested more than once."""
    status = dict(query(_STATUS))
    page_bytes = int(status["Innodb_page_size"])
    return Counters(
        cpu_s=cpu_s,
        log_bytes=int(status["Innodb_lsn_current"]),
        doublewrite_bytes=int(status["Innodb_dblwr_pages_written"]) * page_bytes,
        logical_reads=int(status["Innodb_buffer_pool_read_requests"]),
        physical_reads=int(status["Innodb_data_reads"]),
        pages_read=int(status["Innodb_pages_read"]),
        physical_writes=int(status["Innodb_data_writes"]),
        pages_written=int(status["Innodb_pages_written"]),
        page_bytes=page_bytes,
        commits=sum(count for (count,) in query(_COMMITS)),
    )


_THREADS = f"SELECT id, tid FROM information_schema.processlist WHERE user = '{CLIENT}' AND id <> {{}}"
_OWN_THREAD = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()"
_REFRESH_S = 0.5
"""The server makes a temporary table for each query of its threads: too costly for every tick."""


class MariadbWaitProbe(ThreadWaitProbe):
    """Samples the threads of the load's sessions, at most 50 of them."""

    def __init__(
        self, pid: int, role_of: RoleOf, connect: Callable[[], pymysql.Connection[Any]], own: int
    ) -> None:
        """Connect; the sampled sessions need not exist yet.

        Args:
            own: number of tierwise's own session of the load's account, which is not sampled.
        """
        super().__init__([pid], role_of, lambda: 0)
        self._pid = pid
        self._of_the_load = _THREADS.format(own)
        self._connection = connect()
        self._own_tid = int(self._query(_OWN_THREAD)[0][0])
        self._threads: dict[int, Path] = {}
        self._refresh_at_s = 0.0

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        """Sleep, inspect one thread after the other, then ask about those that wait for another thread."""
        if time.monotonic() >= self._refresh_at_s:
            found = self._query(self._of_the_load)
            self._threads = {session: self._tasks[0] / str(tid) for session, tid in found}
            self._refresh_at_s = time.monotonic() + _REFRESH_S
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

    def _behind_the_log(self, waiting: list[int]) -> dict[int, WaitClass]:
        """Find the waiting sessions that commit: they wait for another session's log flush."""
        states = {session: state for session, *_, state, _info, _progress in self._query("SHOW PROCESSLIST")}
        return {session: "log_lock" for session in waiting if states.get(session) in COMMITS}

    def _query(self, sql: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
