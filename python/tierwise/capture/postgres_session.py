"""Sessions of PostgreSQL: counters and waits of all its databases, which share one set of processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

from tierwise import _core
from tierwise.capture.postgres_names import RELATIONS_SQL, numbered_databases, unnamed_databases_note
from tierwise.capture.postgres_waits import postgres_session_state
from tierwise.capture.sql_session import (
    CounterReading,
    ServerFacts,
    SessionSample,
    SqlReadError,
    connection_peers,
    session_sample,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg
from tierwise.model.numbers import counted_noun
from tierwise.model.placement import Role
from tierwise.recording.buffer_content import MOST_FILES, BufferContent, BufferedFile

APPLICATION = "tierwise observe"
_CONNECT_S = 5
_OLDEST, _STAT_WAL, _STAT_IO, _CHECKPOINTER, _WAL_IN_STAT_IO = 110_000, 140_000, 160_000, 170_000, 180_000
_LEADERS, _COUNTED_WORKERS = 130_000, 180_000
"""Versions: the oldest that is observed, and those that brought a view."""
_SAFELY = """
    SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '2s';
    SET LOCAL statement_timeout = '30s';
"""
"""Precedes each statement, in the same message and transaction.

The DSN may be a superuser's, and others may have made functions, operators and views of the same names. It is
not set for the session: a pooler gives the session to others afterwards.
"""

# Each of the following gives counters by name, and among them as "reset" when they began. One gives
# "databases" too: a dropped one takes its part of the sums away.
_DATABASES = """
    SELECT json_build_object('reset', concat(max(stats_reset), ' ', pg_postmaster_start_time()),
                             'databases', array_agg(datid::bigint),
                             'commits', sum(xact_commit)::bigint, 'rollbacks', sum(xact_rollback)::bigint,
                             'page_hits', sum(blks_hit)::bigint, 'page_reads', sum(blks_read)::bigint)
    FROM pg_stat_database
"""
_LOG = """
    SELECT json_build_object('log_bytes', coalesce((
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END
        - '0/0')::bigint, 0))
"""
"""The log position: covers the bytes of pg_stat_wal, but without delay or resets."""
_CHECKPOINTS = "SELECT json_build_object('checkpoints', num_timed + num_requested) FROM pg_stat_checkpointer"
_CHECKPOINTS_BEFORE_17 = """
    SELECT json_build_object('checkpoints', checkpoints_timed + checkpoints_req) FROM pg_stat_bgwriter
"""
_IMAGES = """
    SELECT json_build_object('reset', stats_reset, 'full_page_images', wal_fpi,
                             'logins', (SELECT sum(sessions)::bigint FROM pg_stat_database)) FROM pg_stat_wal
"""
_PARALLEL = """
    SELECT json_build_object('parallel_workers', sum(parallel_workers_launched)::bigint) FROM pg_stat_database
"""
_COMMITS_OF_WORKER = 2
"""A parallel worker commits its start and its settings; its part of the query is none (PostgreSQL 18.6)."""
_TABLES = """
    SELECT json_build_object(
        'reset', (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()),
        'heap_reads', coalesce(sum(heap_blks_read + coalesce(toast_blks_read, 0)), 0)::bigint
            + (SELECT coalesce(sum(blks_read), 0)::bigint FROM pg_stat_database
               WHERE datname <> current_database()),
        'index_reads', coalesce(sum(idx_blks_read), 0)::bigint)
    FROM pg_statio_user_tables
"""
"""Reads of other databases are not told apart, and count as those of tables."""
_TEMP = "SELECT json_build_object('temp_bytes', sum(temp_bytes)::bigint) FROM pg_stat_database"
_WAL = """
    SELECT json_build_object(
        'reset', stats_reset, 'log_flushes', wal_sync,
        'log_flush_us', CASE WHEN current_setting('track_wal_io_timing')::boolean
                             THEN (wal_sync_time * 1000)::bigint END)
    FROM pg_stat_wal
"""
_IO = """
    SELECT json_build_object('reset', max(stats_reset),
                             'page_reads', sum(reads) FILTER (WHERE backend_type = 'client backend'),
                             'page_writes', sum(coalesce(writes, 0) + coalesce(extends, 0)))
    FROM pg_stat_io WHERE object = 'relation'
"""
_IO_WAL = """
    SELECT json_build_object(
        'reset', max(stats_reset), 'log_flushes', sum(fsyncs),
        'log_flush_us', CASE WHEN current_setting('track_wal_io_timing')::boolean
                             THEN (sum(fsync_time) * 1000)::bigint END)
    FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'
"""
_SIZES = """
    SELECT json_build_object(
               'data', sum(bytes) FILTER (WHERE NOT own AND kind <> 'i' AND NOT temporary),
               'index', sum(bytes) FILTER (WHERE NOT own AND kind = 'i' AND NOT temporary),
               'temp', sum(bytes) FILTER (WHERE temporary),
               'system', sum(bytes) FILTER (WHERE own),
               'log', (SELECT sum(size) FROM pg_ls_waldir())),
           elsewhere, number
    FROM (
        SELECT relkind AS kind, oid < 16384 AS own, relpersistence = 't' AS temporary,
               (SELECT sum(coalesce(pg_relation_size(oid, fork), 0))
                FROM unnest(ARRAY['main', 'fsm', 'vm', 'init']) AS fork) AS bytes
        FROM pg_class WHERE relkind IN ('r', 'm', 't', 'i', 'S')
    ) AS files, (
        SELECT coalesce(sum(pg_database_size(oid)), 0)::bigint AS elsewhere, count(*) AS number
        FROM pg_database
        WHERE datname <> current_database() AND NOT datistemplate AND datname <> 'postgres'
    ) AS others
    GROUP BY elsewhere, number
"""
"""Bytes by role of the connected database; then bytes and number of the others."""


_LOGINS = (
    "clients connect often, and PostgreSQL counts each connection as a transaction, which 14 and later tell: "
    "the rate is too high by their number"
)
_OFTEN = 2
"""Sessions over the most at once, above which clients connect often."""


_DATABASES_HELD = """
    SELECT d.oid::bigint, d.datname, d.datallowconn AND has_database_privilege(d.oid, 'CONNECT')
    FROM pg_database d LEFT JOIN pg_stat_database s ON s.datid = d.oid
    WHERE NOT d.datistemplate AND d.datname <> current_database()
    ORDER BY s.blks_read + s.blks_hit DESC NULLS LAST, d.oid
"""
"""The other databases, those first that read most pages, and whether the user may connect to each."""
_SAME = """
    SELECT extract(epoch FROM pg_postmaster_start_time())::text,
           (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
"""
"""Tells servers apart, and databases of one: a pooler may lead to another server for another database."""
_MOST_NAMES = 20_000
"""Names that are kept of one database."""
_MOST_DATABASES, _MOST_RELATIONS, _NAMING_S = 100, 100_000, 30.0
"""Limits of asking other databases for names: databases, names in all, and the time to begin with another."""
_BUFFER_VIEW = """
    SELECT c.oid::regclass::text, quote_ident(current_user),
           CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'pg_monitor'
                WHEN NOT has_schema_privilege(c.relnamespace, 'USAGE')
                THEN concat('USAGE ON SCHEMA ', c.relnamespace::regnamespace::text) END
    FROM pg_extension e
    JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
    WHERE e.extname = 'pg_buffercache' AND c.relname = 'pg_buffercache'
"""
"""The extension's own view, whatever its schema is, and the right to read it that the user lacks."""
_USAGE_COUNTS = range(6)
"""Of PostgreSQL, BM_MAX_USAGE_COUNT is the highest."""
_BUFFER = f"""
    SELECT * FROM (
        SELECT CASE WHEN b.relfilenode IS NULL THEN NULL
                    WHEN b.reltablespace = 1664 THEN concat('global/', b.relfilenode)
                    WHEN b.reltablespace = 1663 THEN concat('base/', b.reldatabase, '/', b.relfilenode)
                    ELSE concat_ws('/', 'pg_tblspc', b.reltablespace, directory, b.reldatabase, b.relfilenode)
               END AS path,
               (sum(count(*)) OVER ())::bigint, count(*) AS pages, count(*) FILTER (WHERE b.isdirty),
               {", ".join(f"count(*) FILTER (WHERE b.usagecount = {count})" for count in _USAGE_COUNTS)}
        FROM {{}} b, (SELECT concat('PG_', current_setting('server_version_num')::integer / 10000, '_',
                                    catalog_version_no) AS directory FROM pg_control_system()) v
        GROUP BY 1
    ) AS held ORDER BY path IS NOT NULL, pages DESC LIMIT {MOST_FILES + 1}
"""
"""Pages by file, without a file first; the server counts them, so that no list of pages is sent."""
_STATES = f"""
    SELECT array_agg(pid), CASE WHEN backend_type = 'parallel worker' THEN coalesce({{}}, 0) END,
           coalesce(state LIKE 'idle%' AND state_change < to_timestamp({{}}), false),
           state, wait_event_type, wait_event
    FROM pg_stat_get_activity((SELECT NULL::integer FROM pg_sleep({{}})))
    WHERE backend_type IN ('client backend', 'parallel worker') AND application_name <> '{APPLICATION}'
      AND EXISTS (SELECT FROM pg_am)
    GROUP BY 2, 3, 4, 5, 6
"""
"""The server waits, then reads its session table: an argument is evaluated before the function is called.

It reads a table, because PostgreSQL 15 and later count no transaction of a session that reads none, and the
observer's own are subtracted.
"""
_FOR_WORKERS = frozenset({"ExecuteGather", "MessageQueueReceive", "ParallelFinish"})
"""Events of a session that waits for its parallel workers: what they wait for, it waits for."""
_NAMED = f"""
    SELECT pg_backend_pid(), set_config('application_name', '{APPLICATION}', pg_backend_pid() <> {{}})
"""
"""Names this session, but none that a pooler lends: its clients would not be looked at.

A pooler gives its clients process numbers of its own.
"""
_NOW = "SELECT extract(epoch FROM clock_timestamp())::double precision"
_FACTS = """
    SELECT pg_backend_pid(), current_setting('server_version'),
           CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('data_directory') END
"""
_SYSTEM = "SELECT system_identifier::text FROM pg_control_system()"
_SETTINGS = "SELECT name, current_setting(name) FROM pg_settings"
_NAMES_HOSTS = "synchronous_standby_names"
"""Its value names hosts, so that only whether it is set is kept."""
_RIGHTS = """
    SELECT current_setting('server_version'), current_setting('block_size')::integer,
           pg_has_role('pg_monitor', 'USAGE'), quote_ident(current_user), current_setting('track_activities'),
           pg_is_in_recovery()
"""


class PostgresSession:
    """A session of PostgreSQL; its methods raise :class:`SqlReadError` if the server does not answer.

    Attributes:
        engine: name of the engine.
        asked: transactions that it was to the server; reported up to a second late, as those of others.
        version: of the server; known from :meth:`watch` on, as the next two.
        page_bytes: size of a page.
        limits: what this server does not tell, as sentences.
    """

    engine = "postgres"
    late_s = 1.0
    """Sessions report to the counters up to this much later (``PGSTAT_MIN_INTERVAL``)."""

    def __init__(self, dsn: str, database: str | None = None) -> None:
        """Connect, to another database than the DSN's if one is given; raises as all methods."""
        self.asked = 0
        self.version, self.page_bytes, self.limits = "", 0, list[str]()
        self._first_look_s: float | None = None
        """By the server's clock."""
        self._seen, self._most_seen = set[int](), 0
        """Client sessions of all looks, and most of one look."""
        try:
            self._dsn = psycopg.conninfo.make_conninfo(dsn, dbname=database)
        except psycopg.ProgrammingError:
            raise SqlReadError(SqlReadError.MALFORMED) from None  # the driver would repeat parts of it
        with _unreadable():
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                application_name="",
                connect_timeout=_CONNECT_S,
                prepare_threshold=None,  # a pooler between may not keep prepared statements
            )
        ((task, _),) = self._rows(_NAMED.format(self._connection.info.backend_pid))
        self._pooled = task != self._connection.info.backend_pid
        self._number = self._connection.info.server_version
        since_17 = self._number >= _CHECKPOINTER
        self._views = [_DATABASES, _LOG, _CHECKPOINTS if since_17 else _CHECKPOINTS_BEFORE_17]
        if self._number >= _STAT_WAL:
            self._views.append(_IMAGES)
        if self._number >= _COUNTED_WORKERS:
            self._views.append(_PARALLEL)

    def facts(self, names: Sequence[str]) -> ServerFacts:
        """About its server, with the settings of these names; the directory by ``pg_read_all_settings``."""
        ((task, version, directory),) = self._rows(_FACTS)
        settings = {name: str(value) for name, value in self._rows(_SETTINGS) if name in names}
        if settings.get(_NAMES_HOSTS):
            settings[_NAMES_HOSTS] = "set"
        try:
            ((system,),) = self._rows(_SYSTEM)
        except SqlReadError:  # the right to call it was taken away
            system = None
        return ServerFacts(
            peers=connection_peers(self._connection.fileno()),
            task=int(task),
            system=system,
            data_directory=directory,
            version=str(version).split()[0],
            settings=settings,
        )

    def read(self) -> CounterReading:
        """Counters of all databases, in one statement; after :meth:`watch`, those of an observation too."""
        (views,) = self._rows(f"SELECT {', '.join(f'({view})' for view in self._views)}")
        origin = " ".join(str(view.pop("reset", "")) for view in views)
        databases = frozenset(views[0].pop("databases"))
        counts = {name: int(count) for view in views for name, count in view.items() if count is not None}
        return CounterReading(counts, origin, databases)

    @staticmethod
    def transactions(counts: Mapping[str, int]) -> int:
        """Transactions that ended, by increases of counters; a statement outside any counts as one.

        Those that are counted as ``own`` are left out, one of each login (known since PostgreSQL 14), and
        those of parallel workers (since 18).
        """
        workers = _COMMITS_OF_WORKER * counts.get("parallel_workers", 0)
        others = counts.get("own", 0) + counts.get("logins", 0) + workers
        return max(counts["commits"] + counts["rollbacks"] - others, 0)

    @staticmethod
    def uncounted(_: Mapping[str, int]) -> None:
        """None: the server counts all transactions."""

    def watch(self) -> None:
        """Prepare for an observation.

        Raises:
            TierwiseError: if the server is too old or does not track its sessions, or the user lacks the
                rights of ``pg_monitor``.
        """
        ((version, self.page_bytes, allowed, user, tracked, standby),) = self._rows(_RIGHTS)
        self.version = str(version).split()[0]
        if self._number < _OLDEST:
            raise TierwiseError(f"PostgreSQL {version} is too old to be observed", "observe 11 or later")
        if not allowed:
            raise TierwiseError(
                f"the user {user} may not see what other sessions wait for",
                f"run as an administrator: GRANT pg_monitor TO {user}",
            )
        if tracked != "on":
            raise TierwiseError(
                "track_activities is off, so that the server does not tell what its sessions do",
                "run as an administrator: ALTER SYSTEM SET track_activities = on; SELECT pg_reload_conf()",
            )
        further, self.limits = observation_statements(self._number, self.version)
        self._views += further
        if standby:
            self.limits.append(_core.STANDBY)

    def look(self, delay_s: float) -> SessionSample:
        """Client sessions ``delay_s`` from now."""
        if self._first_look_s is None:
            ((self._first_look_s,),) = self._rows(_NOW)
        leader = "leader_pid" if self._number >= _LEADERS else "NULL::integer"
        rows = self._rows(_STATES.format(leader, self._first_look_s, delay_s))
        workers = {leader: seen for _, leader, _, *seen in rows if leader is not None}
        if workers and (limit := self._parallel()) not in self.limits:
            self.limits.append(limit)
        look = session_sample(
            (
                [session],
                unused,
                postgres_session_state(*(workers.get(session, seen) if seen[-1] in _FOR_WORKERS else seen)),
            )
            for sessions, leader, unused, *seen in rows
            if leader is None
            for session in sessions
        )
        self._seen |= look.active
        self._most_seen = max(self._most_seen, len(look.active))
        often = len(self._seen) > _OFTEN * self._most_seen
        if often and self._number < _STAT_WAL and _LOGINS not in self.limits:
            self.limits.append(_LOGINS)
        return look

    def _parallel(self) -> str:
        """What is not known of queries that have parallel workers."""
        counted = (
            "" if self._number >= _COUNTED_WORKERS else ", which PostgreSQL counts as transactions up to 17"
        )
        return (
            f"queries had parallel workers{counted}: their processor time is not counted, so that answers "
            "promise too much where cores are busy"
        )

    def sizes(self) -> dict[Role, int]:
        """Bytes of files by role: of the connected database by kind, of other databases as data."""
        try:
            ((relations, elsewhere, others),) = self._rows(_SIZES)
        except SqlReadError as error:
            self.limits.append(f"the sizes of files are not known: {error.reason}")
            return {}
        sizes = {Role(role): int(size) for role, size in relations.items() if size}
        if elsewhere:
            sizes[Role.DATA] = sizes.get(Role.DATA, 0) + int(elsewhere)
            self.limits.append(
                f"files of {counted_noun(others, 'other database')} count as data, their indexes too: "
                f"{elsewhere / 1e9:,.3g} GB"
            )
        return sizes

    def relations(self) -> list[dict[str, Any]]:
        """Tables and indexes of the databases that the user may see, by their files, with sizes in bytes.

        Those of another database than the connected one have its name. The limits say which databases gave
        no names, by their numbers: a recording can be given to others, and sentences stay in it.
        """
        ((server, own),) = self._rows(_SAME)
        named = {own: [_relation(row, "") for row in self._rows(RELATIONS_SQL.format(_MOST_NAMES + 1))]}
        unnamed: dict[str, list[int]] = {}
        until_s = time.monotonic() + _NAMING_S
        for place, (number, database, allowed) in enumerate(self._rows(_DATABASES_HELD)):
            if not allowed:
                reason = "the user of the DSN may not connect to them"
            elif place >= _MOST_DATABASES:
                reason = f"only {_MOST_DATABASES} databases are asked"
            elif sum(map(len, named.values())) >= _MOST_RELATIONS:
                reason = f"only {_MOST_RELATIONS:,} names are kept"
            elif time.monotonic() >= until_s:
                reason = f"{_NAMING_S:.0f} s were over"
            else:
                try:
                    named[number] = self._relations_of(str(database), (server, number))
                    continue
                except SqlReadError as error:
                    reason = error.reason
            unnamed.setdefault(reason, []).append(number)
        self.limits += [unnamed_databases_note(numbers, reason) for reason, numbers in unnamed.items()]
        if cut := [number for number, relations in named.items() if len(relations) > _MOST_NAMES]:
            self.limits.append(
                f"of the database{numbered_databases(cut)}, only the {_MOST_NAMES:,} largest tables and "
                "indexes have names: smaller ones have the numbers of their files"
            )
        return [relation for relations in named.values() for relation in relations[:_MOST_NAMES]]

    def _relations_of(self, database: str, identity: tuple[Any, Any]) -> list[dict[str, Any]]:
        """Tables and indexes of another database of this server."""
        with closing(PostgresSession(self._dsn, database)) as other:
            if other._rows(_SAME) != [identity]:
                raise SqlReadError("the DSN leads to another server or database there")
            return [_relation(row, database) for row in other._rows(RELATIONS_SQL.format(_MOST_NAMES + 1))]

    def require_buffer_content(self) -> None:
        """Check that the content of the buffer can be read.

        Raises:
            TierwiseError: without the extension, or the right to read its view.
        """
        self._buffer_view()

    def buffer_content(self) -> BufferContent:
        """Pages of the buffer by file, counted by the server."""
        rows = self._rows(_BUFFER.format(self._buffer_view()))
        ((page_bytes,),) = self._rows("SELECT current_setting('block_size')::integer")
        pages = int(rows[0][1])
        return BufferContent(
            page_bytes=page_bytes,
            pages=pages,
            used_pages=pages - sum(row[2] for row in rows if row[0] is None),
            files=[
                BufferedFile(
                    path=path,
                    pages=held,
                    dirty_pages=dirty,
                    pages_by_use={str(use): count for use, count in enumerate(counts) if count},
                )
                for path, _, held, dirty, *counts in rows
                if path is not None
            ],
        )

    def _buffer_view(self) -> str:
        views = self._rows(_BUFFER_VIEW)
        if not views:
            raise TierwiseError(
                "--buffer-content: the database of the DSN has no extension pg_buffercache",
                "run in it as an administrator: CREATE EXTENSION pg_buffercache",
            )
        ((view, user, missing),) = views
        if missing:
            raise TierwiseError(
                f"--buffer-content: the user {user} may not read {view}",
                f"run in its database as an administrator: GRANT {missing} TO {user}",
            )
        return str(view)

    def second(self) -> PostgresSession:
        """Another session, perhaps of another server if the DSN leads to several.

        Raises:
            TierwiseError: if the session is lent by a pooler.
        """
        if self._pooled:
            raise TierwiseError(
                "the DSN leads through a pooler: looking at the sessions would keep one of its sessions from "
                "its clients",
                "give the address of the server itself",
            )
        return PostgresSession(self._dsn)

    def ping(self) -> None:
        """Have the server do nothing."""
        self._rows("SELECT 1")

    def close(self) -> None:
        """Disconnect; no error if the connection was lost."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _rows(self, sql: str) -> list[Any]:
        """Rows of one statement, in which names mean PostgreSQL's own objects only."""
        self.asked += 1
        with _unreadable():
            cursor = self._connection.execute((_SAFELY + sql).encode(), prepare=False)
            while cursor.nextset():
                pass
            return [tuple(map(_text, row)) for row in cursor.fetchall()]


def observation_statements(number: int, version: str) -> tuple[list[str], list[str]]:
    """Statements that read what an observation counts beside a recording's counters.

    Args:
        number: ``server_version_num``.

    Returns:
        The statements, and what cannot be counted, as sentences.
    """
    views, limits = [_TEMP, _TABLES], []
    if number >= _WAL_IN_STAT_IO:
        views.append(_IO_WAL)
    elif number >= _STAT_WAL:
        views.append(_WAL)
    else:
        limits.append(
            f"PostgreSQL {version} has no pg_stat_wal, which came with 14: flushes of the log are not counted"
        )
    if number >= _STAT_IO:
        views.append(_IO)
    else:
        limits.append(
            f"PostgreSQL {version} has no pg_stat_io, which came with 16: reads count pages, not calls, and "
            "writes of pages are not counted"
        )
    return views, limits


def _text(value: Any) -> Any:
    """Text, where a server without an encoding (SQL_ASCII) gives bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _relation(row: Sequence[Any], database: str) -> dict[str, Any]:
    path, name, kind, table, partitioned, size_bytes = row
    return {
        "path": path,
        "name": name,
        "kind": kind,
        "table": None if table == "." else table,
        "partitioned": None if partitioned == "." else partitioned,
        "database": database,
        "size_bytes": size_bytes,
    }


@contextmanager
def _unreadable() -> Iterator[None]:
    """Turn the driver's errors into :class:`SqlReadError`."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise SqlReadError(SqlReadError.DENIED, _line(error)) from None
    except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
        raise SqlReadError(SqlReadError.SLOW, _line(error)) from None
    except psycopg.OperationalError as error:
        raise SqlReadError(SqlReadError.LOST, _line(error)) from None
    except psycopg.Error as error:
        raise SqlReadError(SqlReadError.REFUSED, _line(error)) from None


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
