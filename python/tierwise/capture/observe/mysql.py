"""MariaDB and MySQL over SQL, with ``performance_schema`` and the right PROCESS.

A session's file I/O is an event of ``performance_schema``. InnoDB's log is not (MariaDB) or is done by
threads of its own (MySQL), so a session that commits counts as waiting for the log by its state.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tierwise.capture import mysql_counters
from tierwise.capture.counter_reading import Reading, UnreadableError
from tierwise.capture.observe.server import Catalogue, State, Tally, require_one_server
from tierwise.engines.mariadb.waits import COMMITS
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.model.roles import Role
from tierwise.results import WaitClass

_TRIES = 9
_ABOUT = """
    SELECT version(), @@performance_schema, @@innodb_page_size,
           concat("'", replace(current_user(), '@', "'@'"), "'")
"""
_CONSUMED = """
    SELECT max(enabled = 'YES') FROM performance_schema.setup_consumers WHERE name = 'events_waits_current'
"""
_STATES = """
    SELECT threads.processlist_command, threads.processlist_state, waits.event_name, waits.operation,
           locks.trx_id IS NOT NULL, count(*)
    FROM performance_schema.threads AS threads
    LEFT JOIN performance_schema.events_waits_current AS waits
      ON waits.thread_id = threads.thread_id AND waits.timer_end IS NULL
         AND waits.event_name LIKE 'wait/io/file/%%'
    LEFT JOIN information_schema.innodb_trx AS locks
      ON locks.trx_mysql_thread_id = threads.processlist_id AND locks.trx_state = 'LOCK WAIT'
    WHERE threads.type = 'FOREGROUND' AND threads.processlist_id NOT IN (connection_id(), %s)
      AND threads.processlist_command NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID')
    GROUP BY 1, 2, 3, 4, 5
"""
_SIZES = """
    SELECT CASE WHEN name LIKE 'innodb_undo%%' THEN 'undo' WHEN name = 'innodb_temporary' THEN 'temp'
                WHEN name = 'innodb_system' OR name LIKE 'mysql%%' THEN 'system' ELSE 'data' END,
           sum(file_size)
    FROM information_schema.{} GROUP BY 1
"""
_TABLESPACES = {"mariadb": "innodb_sys_tablespaces", "mysql": "innodb_tablespaces"}
_LOG_SIZE = "SHOW GLOBAL VARIABLES LIKE 'innodb_log_file_size'"
_FLUSH_COUNT = "Innodb_os_log_fsyncs"
_COMMITTING = {*(state.lower() for state in COMMITS), "waiting for handler commit"}
_CONSUMER = (
    "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_waits_current'"
)


class MysqlServer:
    """A server, and the session that reads its counters."""

    engine = "mariadb"

    def __init__(self, dsn: str) -> None:
        """Connect.

        Raises:
            UnreadableError: if that fails.
            TierwiseError: if rights are missing, or the server does not watch its sessions.
        """
        self._dsn = dsn
        self._own = 0
        self._sampled: Tally | None = None
        self._connection = mysql_counters.connect(dsn)
        try:
            self._require()
        except BaseException:
            self.close()
            raise

    def _require(self) -> None:
        ((self.version, watched, self.page_bytes, user),) = self._rows(_ABOUT)
        if not int(watched):
            raise TierwiseError(
                "performance_schema is off, so that the server does not tell what its sessions wait for",
                "start the server with performance_schema=ON",
            )
        try:
            ((consumed,),) = self._rows(_CONSUMED)
            if not consumed:
                raise TierwiseError("the server does not keep its sessions' waits", f"run {_CONSUMER}")
            self._rows(_STATES, [0])
        except UnreadableError as error:
            raise TierwiseError(
                f"the user may not see what other sessions wait for: {error.detail}",
                f"run as an administrator: GRANT PROCESS ON *.* TO {user}; "
                f"GRANT SELECT ON performance_schema.* TO {user}",
            ) from None
        if "mariadb" not in self.version.lower():
            self.engine = "mysql"
        self._sizes = _SIZES.format(_TABLESPACES[self.engine])
        self.limits = [
            "a session in the state of a commit counts as waiting for the log: the server does not tell its "
            "waits for the log from those for its binary log's order"
        ]

    def read(self) -> Reading:
        """Counters of the server; transactions are found by :meth:`transactions`."""
        with mysql_counters.unreadable():
            reading = mysql_counters.read_from(self._connection)
            status = dict(self._rows("SHOW GLOBAL STATUS LIKE 'Innodb_%%'"))
        counts = dict(reading.counts)
        counts["page_writes"] = int(status.get("Innodb_pages_written", 0))
        if _FLUSH_COUNT in status:
            counts["log_flushes"] = int(status[_FLUSH_COUNT])
        counts["own"] = self._own + (self._sampled.ticks if self._sampled else 0)
        return Reading(counts, reading.origin)

    @staticmethod
    def transactions(counts: dict[str, int]) -> int:
        """Transactions that ended; the observer's own are statements that read no table of InnoDB."""
        others = counts["data_statements"] - counts["own"]
        return mysql_counters.transactions({**counts, "data_statements": max(others, 0)})

    def catalogue(self) -> Catalogue:
        """Tables with their indexes, which are in one file, and the log."""
        try:
            sizes = {Role(role): int(size) for role, size in self._rows(self._sizes)}
            ((_, log_bytes),) = self._rows(_LOG_SIZE)
        except (UnreadableError, ValueError):
            return Catalogue({}, None, ["the sizes of files are not known: the server did not tell"])
        sizes[Role.LOG] = int(log_bytes)
        return Catalogue(sizes, sum(sizes.values()))

    def probe(self, tally: Tally) -> MysqlProbe:
        """A sampler of all client sessions."""
        self._sampled = tally
        ((own,),) = self._rows("SELECT connection_id()")
        probe = MysqlProbe(self._dsn, tally, own)
        with mysql_counters.unreadable():
            require_one_server(*map(mysql_counters.server_of, (self._connection, probe.connection)))
        return probe

    def tick_s(self) -> float:
        """Least time of a look at the sessions, beyond that of an empty statement: others may be running."""
        looks = min(self._timed(_STATES, [0]) for _ in range(_TRIES))
        return max(looks - min(self._timed("SELECT 1", []) for _ in range(_TRIES)), 0.0)

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(pymysql.MySQLError):
            self._connection.close()

    def _timed(self, sql: str, values: list[Any]) -> float:
        began_s = time.perf_counter()
        self._rows(sql, values)
        return time.perf_counter() - began_s

    def _rows(self, sql: str, values: Sequence[int] = ()) -> list[Any]:
        self._own += 1
        return _rows(self._connection, sql, values)


class MysqlProbe:
    """Looks at all client sessions with one statement over a connection of its own."""

    def __init__(self, dsn: str, tally: Tally, other: int) -> None:
        """Connect; ``other`` is the id of the observer's other session.

        Raises:
            UnreadableError: if that fails.
        """
        self._tally, self._other = tally, other
        self.connection = mysql_counters.connect(dsn)

    def sample(self, delay_s: float) -> list[WaitClass]:
        """The class of each client session, ``delay_s`` from now."""
        time.sleep(delay_s)
        states: Counter[State] = Counter()
        for *seen, sessions in _rows(self.connection, _STATES, [self._other]):
            states[state_of(*seen)] += sessions
        return self._tally.add(states)

    def cpu_s(self) -> float:
        """Unknown over SQL."""
        return 0.0

    def close(self) -> None:
        """Disconnect."""
        with contextlib.suppress(pymysql.MySQLError):
            self.connection.close()


def state_of(
    command: str | None, state: str | None, event: str | None, operation: str | None, behind_lock: int
) -> State:
    """The state of a session.

    Args:
        command: as in the list of processes, like the next.
        state: what it does.
        event: name of the file event in progress, if there is one.
        operation: of that event.
        behind_lock: whether InnoDB has it wait for a lock.
    """
    if command == "Sleep":
        return State("Sleep", "client", None)
    if event is not None:
        return _file_state(event, operation or "")
    name = (state or "").lower()
    if behind_lock or ("lock" in name and name.startswith("waiting for")):
        return State(state or "lock", "lock", None)
    if name in _COMMITTING:
        return State(state or "commit", "log_lock", Role.LOG)
    return State("active", "cpu", None)


def _file_state(event: str, operation: str) -> State:
    short = event.removeprefix("wait/io/file/")
    name = f"{short}:{operation}"
    if short == "innodb/innodb_log_file":
        return State(name, "log_sync", Role.LOG)
    if short == "innodb/innodb_data_file":
        role = Role.DATA
    elif short.startswith("sql/binlog"):
        role = Role.ARCHIVE
    else:
        temporary = short in ("innodb/innodb_temp_file", "sql/io_cache", "aria/MAD", "aria/MAI")
        role = Role.TEMP if temporary else Role.SYSTEM
    return State(name, "data_read" if operation in ("read", "fetch") else "data_write", role)


def _rows(connection: pymysql.Connection[Any], sql: str, values: Sequence[int] = ()) -> list[Any]:
    with mysql_counters.unreadable(), connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
