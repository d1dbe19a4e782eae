"""Sessions of MariaDB and MySQL: their server-wide counters, and their waits from ``performance_schema``.

A session's file I/O is an event of ``performance_schema``. InnoDB's log is not (MariaDB) or is done by
threads of its own (MySQL), so a session that commits counts as waiting for the log by its state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tierwise.capture.sql_session import Facts, Reading, State, UnreadableError, peers_of
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role
from tierwise.predict.space import INNODB_LOG, innodb_log
from tierwise.recording.buffer import MOST_FILES, BufferContent, BufferedFile

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
_STATUS = "SHOW GLOBAL STATUS"
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
    SELECT threads.processlist_command, threads.processlist_state, waits.event_name, waits.operation,
           locks.trx_id IS NOT NULL, count(*)
    FROM performance_schema.threads AS threads
    LEFT JOIN performance_schema.events_waits_current AS waits
      ON waits.thread_id = threads.thread_id AND waits.end_event_id IS NULL
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
    """A session of MariaDB or MySQL; its methods raise :class:`UnreadableError` without an answer.

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
        try:
            options = _options(dsn)
        except ValueError:
            raise UnreadableError(UnreadableError.MALFORMED) from None  # the message would repeat parts of it
        with _unreadable():
            self._connection = pymysql.connect(**options)

    def facts(self, names: Sequence[str]) -> Facts:
        """About its server, with the settings of these names."""
        variables = self._variables("datadir", "version", *names)
        return Facts(
            peers=peers_of(self._connection._sock.fileno()),  # type: ignore[attr-defined]
            task=self._task(),
            system=None,
            data_directory=variables.get("datadir"),
            version=variables.get("version"),
            settings={name: variables[name] for name in names if name in variables},
        )

    def read(self) -> Reading:
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
        # A restart resets the counters, and so does FLUSH STATUS: each has its own clock.
        uptime_s = int(status.get("Uptime", 0))
        flushed_s = uptime_s - int(status.get("Uptime_since_flush_status", uptime_s))
        server = sorted(self._variables(*_OF_SERVER).items())
        return Reading(counts, f"{flushed_s} {innodb is None} {server}")

    @staticmethod
    def transactions(counts: Mapping[str, int]) -> int:
        """Transactions that ended, by InnoDB's own counters, or else by commits and rollbacks of clients.

        Without those, every statement commits by itself. ``Handler_commit`` is unsuitable: it counts
        each statement within a transaction, and with a binary log each commit twice. The observer's own
        transactions are statements that read no table of InnoDB.
        """
        if "innodb_transactions" in counts:
            return counts["innodb_transactions"]
        statements = max(counts["data_statements"] - counts.get("own", 0), 0)
        return counts["commits"] + counts["rollbacks"] or statements

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
            self.states(0.0)
        except UnreadableError as error:
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

    def states(self, delay_s: float) -> Counter[State]:
        """Number of client sessions in each state ``delay_s`` from now, without those of an observer."""
        time.sleep(delay_s)
        states: Counter[State] = Counter()
        for *seen, sessions in self._rows(_STATES, self._beside):
            states[state_of(*seen)] += sessions
        return states

    def sizes(self) -> dict[Role, int]:
        """Bytes of files by role: indexes are in one file with their table."""
        try:
            files = self._rows(_SIZES.format(_TABLESPACES[self.engine]))
            log = innodb_log(self._variables(*INNODB_LOG), self.engine)
        except UnreadableError:
            self.limits.append("the sizes of files are not known: the server did not tell")
            return {}
        sizes = {Role(role): int(size) for role, size in files}
        if log:
            sizes[Role.LOG] = sum(part.size_bytes for part in log)
        else:
            self.limits.append("the size of the log is not known: the server did not tell")
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
        except UnreadableError as error:
            if error.reason != UnreadableError.DENIED:
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
            with suppress(UnreadableError):
                for (task,) in self._rows(sql):
                    if task:
                        return int(task)
        return None

    def _innodb_transactions(self) -> int | None:
        """InnoDB's own count; ``None`` if it is disabled, or this user may not read it."""
        for condition in _ENABLED:
            with suppress(UnreadableError):
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


def state_of(
    command: str | None, state: str | None, event: str | None, operation: str | None, behind_lock: int
) -> State:
    """The state of a session."""
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


def _options(dsn: str) -> dict[str, Any]:
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
    }


@contextmanager
def _unreadable() -> Iterator[None]:
    """Turn the driver's errors into :class:`UnreadableError`."""
    codes = pymysql.constants.ER
    denied = (codes.ACCESS_DENIED_ERROR, codes.DBACCESS_DENIED_ERROR, codes.SPECIFIC_ACCESS_DENIED_ERROR)
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        code, detail = (error.args[0], str(error.args[-1])) if error.args else (None, type(error).__name__)
        if code in denied:
            raise UnreadableError(UnreadableError.DENIED, detail) from None
        refused = isinstance(error, pymysql.err.ProgrammingError)
        raise UnreadableError(UnreadableError.REFUSED if refused else UnreadableError.LOST, detail) from None
