"""Sessions of MariaDB and MySQL: their server-wide counters, and their waits from ``performance_schema``.

A session's file I/O is an event of ``performance_schema``. InnoDB's log is not (MariaDB) or is done by
threads of its own (MySQL), so a session that commits counts as waiting for the log by its state.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tierwise._core import Rules
from tierwise.capture.sql_session import (
    CounterReading,
    ServerFacts,
    SessionSample,
    SessionState,
    SqlReadError,
    connection_peers,
    session_sample,
)
from tierwise.capture.target import load_rules
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role
from tierwise.predict.role_space import INNODB_LOG, innodb_log_space
from tierwise.recording.buffer_content import MOST_FILES, BufferContent, BufferedFile

_TIMEOUT_S = 5
_PORT = 3306
_COUNTS = {
    "commits": ["Com_commit"],
    "rollbacks": ["Com_rollback"],
    "data_statements": [
        *("Com_select", "Com_insert", "Com_insert_select", "Com_update", "Com_update_multi"),
        *("Com_delete", "Com_delete_multi", "Com_replace", "Com_replace_select", "Com_load"),
    ],
    "engine_commits": ["Handler_commit"],
    "page_hits": ["Innodb_buffer_pool_read_requests"],  # less those that needed a read
    "page_reads": ["Innodb_buffer_pool_reads"],
    "log_bytes": ["Innodb_os_log_written"],
}
"""Counter -> the server's own, which are added up."""
_FLUSH_COUNT = "Innodb_os_log_fsyncs"
_WATCHED_COUNTS = {"page_writes": ["Innodb_pages_written"], "log_flushes": [_FLUSH_COUNT]}
"""Those that an observation has too."""
_MORE_STATEMENTS = 1.05
"""Statements for each counted transaction above which some may have committed by themselves: a judgement."""
_STATUS = "SHOW GLOBAL STATUS"
_NUMBERS, _NUMBERS_OF_TRANSACTION = "Innodb_max_trx_id", 2
"""MariaDB numbers the begin and the end of each transaction that writes."""
_VARIABLES = "SHOW GLOBAL VARIABLES WHERE Variable_name IN %s"
_OF_SERVER = ("hostname", "port", "datadir", "server_uuid")
"""Variables that differ between servers."""
_INNODB_TRANSACTIONS = """
    SELECT coalesce(sum(count), 0), count(*) FROM information_schema.innodb_metrics
    WHERE name IN ('trx_rw_commits', 'trx_ro_commits', 'trx_nl_ro_commits', 'trx_rollbacks') AND {}
"""
_ENABLED = ("enabled = 1", "status = 'enabled'")
"""In MariaDB since 10.5, and in MySQL."""
_ALL_ENABLED = 4
_TASKS = (
    "SELECT tid FROM information_schema.processlist WHERE id = connection_id()",
    "SELECT thread_os_id FROM performance_schema.threads WHERE processlist_id = connection_id()",
)
"""The thread of a session, in MariaDB and in MySQL."""
_ABOUT = """
    SELECT version(), @@performance_schema, @@innodb_page_size,
           concat("'", replace(current_user(), '@', "'@'"), "'")
"""
_CONSUMED = """
    SELECT max(enabled = 'YES') FROM performance_schema.setup_consumers WHERE name = 'events_waits_current'
"""
_CONSUMER = (
    "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_waits_current'"
)
_STATES = """
    SELECT group_concat(threads.processlist_id),
           threads.processlist_command = 'Sleep' AND coalesce(threads.processlist_time, 0) > %s,
           threads.processlist_command, threads.processlist_state, waits.event_name, waits.operation,
           locks.trx_id IS NOT NULL, waits.object_name
    FROM performance_schema.threads AS threads
    LEFT JOIN performance_schema.events_waits_current AS waits
      ON waits.thread_id = threads.thread_id AND waits.end_event_id IS NULL
         AND waits.event_name LIKE 'wait/io/file/%%'
    LEFT JOIN information_schema.innodb_trx AS locks
      ON locks.trx_mysql_thread_id = threads.processlist_id AND locks.trx_state = 'LOCK WAIT'
    WHERE threads.type = 'FOREGROUND' AND threads.processlist_id NOT IN (connection_id(), %s)
      AND threads.processlist_command NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID')
    GROUP BY 2, 3, 4, 5, 6, 7, 8
"""
_LISTS = "SET SESSION group_concat_max_len = 1048576"
"""MySQL cuts a list of sessions off at 1,024 bytes."""
_SIZES = """
    SELECT CASE WHEN name IN ('innodb_system', 'mysql') OR name LIKE 'mysql/%%' OR name LIKE 'sys/%%'
                THEN 'system' WHEN name LIKE '%%/%%' THEN 'data'
                WHEN name LIKE 'innodb_undo%%' THEN 'undo' WHEN name = 'innodb_temporary' THEN 'temp'
                ELSE 'data' END,
           sum(file_size)
    FROM information_schema.{} GROUP BY 1
"""
"""A table's own file has the name of its database before a slash."""
_OTHER_TABLES = """
    SELECT count(*) FROM performance_schema.file_instances
    WHERE event_name IN ('wait/io/file/myisam/dfile', 'wait/io/file/aria/MAD')
      AND file_name NOT LIKE '%%/mysql/%%' AND file_name NOT LIKE '%%/#sql%%'
"""
"""Tables of MyISAM and Aria in use. Their sizes need a right on each table, and opening it."""
_TABLESPACES = {"mariadb": "innodb_sys_tablespaces", "mysql": "innodb_tablespaces"}
_POOL = "SELECT @@innodb_buffer_pool_size, @@innodb_page_size"
_NEEDS_PROCESS = "SELECT 1 FROM information_schema.innodb_metrics LIMIT 1"
"""Needs the same right as the content of the pool, and is read at once."""
_MOST_POOL_BYTES = 8 << 30
"""Largest buffer pool whose content is read: the server copies a row for each page into a temporary table."""
_POOL_TIMEOUT_S = 60
_BUFFER = f"""
    SELECT /*+ MAX_EXECUTION_TIME({_POOL_TIMEOUT_S}000) */ spaces.name, pages.held, pages.dirty, pages.old
    FROM (SELECT space, count(*) AS held, count(CASE WHEN oldest_modification > 0 THEN 1 END) AS dirty,
                 count(CASE WHEN is_old = 'YES' THEN 1 END) AS old
          FROM information_schema.innodb_buffer_page WHERE page_state = 'FILE_PAGE' GROUP BY space) AS pages
    LEFT JOIN information_schema.{{}} AS spaces ON spaces.space = pages.space
    ORDER BY pages.held DESC
"""
"""Pages by tablespace, which the server counts: MySQL heeds the hint, MariaDB the variable."""

COMMITS = frozenset(
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
"""States after the last lock request. A commit ends its statement before its part of the log is
flushed, and only then waits for the flush: mostly in ``Updating status``."""
_COMMITTING = {*(state.lower() for state in COMMITS), "waiting for handler commit"}


class MysqlSession:
    """A session of MariaDB or MySQL; its methods raise :class:`SqlReadError` without an answer.

    Attributes:
        engine: name of the engine; ``mysql`` is known from :meth:`watch` on, as the following.
        asked: statements that the server counted as data statements of this session.
        version: of the server.
        page_bytes: size of a page.
        limits: what this server does not tell, as sentences.
    """

    engine = "mariadb"
    late_s = 0.0
    """The counters are those of the sessions themselves."""

    def __init__(self, dsn: str) -> None:
        """Connect; raises as all methods."""
        self._dsn = dsn
        self.asked = 0
        self.version, self.page_bytes, self.limits = "", 0, list[str]()
        self._counts = _COUNTS
        self._beside = 0
        """Number of the observer's other session."""
        self._connected_s = time.monotonic()
        try:
            options = _connection_options(dsn)
        except ValueError:
            raise SqlReadError(SqlReadError.MALFORMED) from None  # the message would repeat parts of it
        with _unreadable():
            self._connection = pymysql.connect(**options)

    def facts(self, names: Sequence[str]) -> ServerFacts:
        """About its server, with the settings of these names."""
        variables = self._variables("datadir", "version", *names)
        return ServerFacts(
            peers=connection_peers(self._connection._sock.fileno()),  # type: ignore[attr-defined]
            task=self._task(),
            system=None,
            data_directory=variables.get("datadir"),
            version=variables.get("version"),
            settings={name: variables[name] for name in names if name in variables},
        )

    def read(self) -> CounterReading:
        """Counters of the server; after :meth:`watch`, those of an observation too."""
        status = dict(self._rows(_STATUS))
        innodb = self._innodb_transactions()
        counts = {
            name: sum(int(status.get(part, 0)) for part in parts) for name, parts in self._counts.items()
        }
        counts["page_hits"] = max(0, counts["page_hits"] - counts["page_reads"])
        if _FLUSH_COUNT not in status:
            counts.pop("log_flushes", None)
        if innodb is not None:
            counts["innodb_transactions"] = innodb
        if _NUMBERS in status:
            counts["write_transactions"] = int(status[_NUMBERS]) // _NUMBERS_OF_TRANSACTION
        # A restart resets the counters, and so does FLUSH STATUS, which the origin tells.
        uptime_s = int(status.get("Uptime", 0))
        flushed_s = uptime_s - int(status.get("Uptime_since_flush_status", uptime_s))
        server = sorted(self._variables(*_OF_SERVER).items())
        return CounterReading(counts, f"{flushed_s} {innodb is None} {server}", uptime_s=uptime_s)

    @staticmethod
    def transactions(counts: Mapping[str, int]) -> int:
        """Transactions that ended, by InnoDB's own counters, or else by commits and rollbacks of clients.

        MariaDB tells those that wrote, too, which also statements outside any are. Without commits and
        rollbacks, every statement commits by itself. ``Handler_commit`` is unsuitable: it counts
        each statement within a transaction, and with a binary log each commit twice. The observer's own
        transactions are statements that read no table of InnoDB.
        """
        if "innodb_transactions" in counts:
            return counts["innodb_transactions"]
        ended = counts["commits"] + counts["rollbacks"]
        return max(ended, counts.get("write_transactions", 0)) if ended else _statements(counts)

    @classmethod
    def uncounted(cls, counts: Mapping[str, int]) -> str | None:
        """Transactions that the counters may not have, as a sentence."""
        ended = counts["commits"] + counts["rollbacks"]
        if not ended or "innodb_transactions" in counts:
            return None
        if _statements(counts) <= _MORE_STATEMENTS * cls.transactions(counts):
            return None
        return (
            "the server does not count statements that commit by themselves, so that rates may be too low: "
            "SET GLOBAL innodb_monitor_enable = 'trx_%' and the right PROCESS have all transactions counted"
        )

    def watch(self) -> None:
        """Prepare for an observation.

        Raises:
            TierwiseError: if the server does not watch its sessions, or the user lacks the right PROCESS.
        """
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
            self.look(0.0)
        except SqlReadError as error:
            raise TierwiseError(
                f"the user may not see what other sessions wait for: {error.detail}",
                f"run as an administrator: GRANT PROCESS ON *.* TO {user}; "
                f"GRANT SELECT ON performance_schema.* TO {user}",
            ) from None
        if "mariadb" not in self.version.lower():
            self.engine = "mysql"
        self._counts = _COUNTS | _WATCHED_COUNTS
        self.limits = [
            "a session in the state of a commit counts as waiting for the log: the server does not tell its "
            "waits for the log from those for its binary log's order"
        ]

    def look(self, delay_s: float) -> SessionSample:
        """Client sessions ``delay_s`` from now; the server counts in whole seconds how long one is idle."""
        time.sleep(delay_s)
        connected_s = math.ceil(time.monotonic() - self._connected_s)
        rows = self._rows(_STATES, connected_s, self._beside)
        return session_sample(
            (map(int, sessions.split(",")), bool(unused), mysql_session_state(*seen))
            for sessions, unused, *seen in rows
        )

    def sizes(self) -> dict[Role, int]:
        """Bytes of files by role: indexes are in one file with their table."""
        try:
            files = self._rows(_SIZES.format(_TABLESPACES[self.engine]))
            log = innodb_log_space(self._variables(*INNODB_LOG), self.engine)
            ((others,),) = self._rows(_OTHER_TABLES)
        except SqlReadError:
            self.limits.append("the sizes of files are not known: the server did not tell")
            return {}
        sizes = {Role(role): int(size) for role, size in files}
        if log:
            sizes[Role.LOG] = sum(part.size_bytes for part in log)
        else:
            self.limits.append("the size of the log is not known: the server did not tell")
        if others:
            tables = numbers.counted_noun(others, "table")
            self.limits.append(f"the size of {tables} of MyISAM or Aria is not known and counts as none")
        if self._variables("log_bin").get("log_bin") == "ON":
            try:
                sizes[Role.ARCHIVE] = sum(int(row[1]) for row in self._rows("SHOW BINARY LOGS"))
            except SqlReadError:
                self.limits.append(
                    "the size of the binary log is not known and counts as none: the user lacks the right "
                    "REPLICATION CLIENT"
                )
        return sizes

    def relations(self) -> list[dict[str, Any]]:
        """None: InnoDB's files are named after their tables."""
        return []

    def require_buffer_content(self) -> None:
        """Check that the content of the buffer pool can be read, and is not too large for that.

        Raises:
            TierwiseError: a larger pool, or a user without the right PROCESS.
        """
        ((pool_bytes, _),) = self._rows(_POOL)
        if pool_bytes > _MOST_POOL_BYTES:
            raise TierwiseError(
                f"--buffer-content: a buffer pool of {pool_bytes / 2**30:,.0f} GiB is too large to be read: "
                "the server copies a row for each page into a temporary table",
                f"leave it out; up to {_MOST_POOL_BYTES >> 30} GiB are read",
            )
        try:
            self._rows(_NEEDS_PROCESS)
        except SqlReadError as error:
            if error.reason != SqlReadError.DENIED:
                raise
            ((*_, user),) = self._rows(_ABOUT)
            raise TierwiseError(
                f"--buffer-content: the user may not read it: {error.detail}",
                f"run as an administrator: GRANT PROCESS ON *.* TO {user}",
            ) from None

    def buffer_content(self) -> BufferContent:
        """Pages of the buffer pool by file, counted by the server."""
        self.require_buffer_content()
        ((pool_bytes, page_bytes),) = self._rows(_POOL)
        maria = "mariadb" in self._variables("version")["version"].lower()
        if maria:
            self._rows(f"SET SESSION max_statement_time = {_POOL_TIMEOUT_S}")
        self._connection._read_timeout = _POOL_TIMEOUT_S + _TIMEOUT_S  # type: ignore[attr-defined]
        rows = self._rows(_BUFFER.format(_TABLESPACES["mariadb" if maria else "mysql"]))
        return BufferContent(
            page_bytes=page_bytes,
            pages=pool_bytes // page_bytes,
            used_pages=sum(row[1] for row in rows),
            files=[
                BufferedFile(
                    path=f"{name}.ibd" if "/" in name else name,
                    pages=held,
                    dirty_pages=dirty,
                    pages_by_use={"young": held - old, "old": old},
                )
                for name, held, dirty, old in rows[:MOST_FILES]
                if name
            ],
        )

    def second(self) -> MysqlSession:
        """Another session, which does not see this one; perhaps of another server."""
        second = MysqlSession(self._dsn)
        ((second._beside,),) = self._rows("SELECT connection_id()")
        return second

    def ping(self) -> None:
        """Have the server do nothing."""
        self._rows("SELECT 1")

    def close(self) -> None:
        """Disconnect; no error if the connection was lost."""
        with suppress(pymysql.MySQLError):
            self._connection.close()

    def _task(self) -> int | None:
        for sql in _TASKS:
            with suppress(SqlReadError):
                for (task,) in self._rows(sql):
                    if task:
                        return int(task)
        return None

    def _innodb_transactions(self) -> int | None:
        """InnoDB's own count; ``None`` if it is disabled, or this user may not read it."""
        for condition in _ENABLED:
            with suppress(SqlReadError):
                ((count, enabled),) = self._rows(_INNODB_TRANSACTIONS.format(condition))
                return int(count) if enabled == _ALL_ENABLED else None
        return None

    def _variables(self, *names: str) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._rows(_VARIABLES, names)}

    def _rows(self, sql: str, *values: object) -> list[Any]:
        """Rows of one statement; the server counts it as one on data unless it is a SHOW."""
        self.asked += not sql.startswith("SHOW")
        with _unreadable(), self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())


def _statements(counts: Mapping[str, int]) -> int:
    """Statements on data, without the observer's own."""
    return max(counts["data_statements"] - counts.get("own", 0), 0)


def mysql_session_state(
    command: str | None,
    state: str | None,
    event: str | None,
    operation: str | None,
    behind_lock: int,
    file: str | None = None,
) -> SessionState:
    """The state of a session; the rules of recordings tell the role of the file that it waits for."""
    if command == "Sleep":
        return SessionState("Sleep", "client", None)
    if event is not None:
        return _file_state(event, operation or "", file or "")
    name = (state or "").lower()
    if behind_lock or ("lock" in name and name.startswith("waiting for")):
        return SessionState(state or "lock", "lock", None)
    if name in _COMMITTING:
        return SessionState(state or "commit", "log_lock", Role.LOG)
    return SessionState("active", "cpu", None)


def _file_state(event: str, operation: str, file: str) -> SessionState:
    short = event.removeprefix("wait/io/file/")
    name = f"{short}:{operation}"
    if short == "innodb/innodb_log_file":
        return SessionState(name, "log_sync", Role.LOG)
    named = _rules().role_of(file)
    role = Role(named) if named else _role_of_event(short)
    return SessionState(name, "data_read" if operation in ("read", "fetch") else "data_write", role)


@cache
def _rules() -> Rules:
    """Read once, and not at each look."""
    return load_rules("mariadb")


def _role_of_event(event: str) -> Role:
    """The role of files whose names tell none."""
    if event == "innodb/innodb_data_file":
        return Role.DATA
    if event.startswith("sql/binlog"):
        return Role.ARCHIVE
    temporary = event in ("innodb/innodb_temp_file", "sql/io_cache", "aria/MAD", "aria/MAI")
    return Role.TEMP if temporary else Role.SYSTEM


def _connection_options(dsn: str) -> dict[str, Any]:
    """Connection options from ``mysql://user:password@host:port/database?unix_socket=/path``."""
    parts = urlsplit(dsn)
    asked = parse_qs(parts.query)
    (socket,) = asked.get("unix_socket", asked.get("socket", [""]))
    return {
        "host": parts.hostname or "localhost",
        "port": parts.port or _PORT,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")) or None,
        "unix_socket": socket or None,
        "connect_timeout": _TIMEOUT_S,
        "read_timeout": _TIMEOUT_S,
        "autocommit": True,
        "init_command": _LISTS,
    }


@contextmanager
def _unreadable() -> Iterator[None]:
    """Turn the driver's errors into :class:`SqlReadError`."""
    codes = pymysql.constants.ER
    denied = (codes.ACCESS_DENIED_ERROR, codes.DBACCESS_DENIED_ERROR, codes.SPECIFIC_ACCESS_DENIED_ERROR)
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        code, detail = (error.args[0], str(error.args[-1])) if error.args else (None, type(error).__name__)
        if code in denied:
            raise SqlReadError(SqlReadError.DENIED, detail) from None
        refused = isinstance(error, pymysql.err.ProgrammingError)
        raise SqlReadError(SqlReadError.REFUSED if refused else SqlReadError.LOST, detail) from None
