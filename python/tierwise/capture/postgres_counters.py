"""Server-wide counters of PostgreSQL: a recording covers all its databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tierwise.capture.counter_reading import DENIED, LOST, MALFORMED, REFUSED, Reading, UnreadableError
from tierwise.model.extras import psycopg

CONNECT_S = 5
_SAFELY = """
    SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '2s';
    SET LOCAL statement_timeout = '30s';
"""
"""Precedes each statement, in the same message and transaction.

The DSN may be a superuser's, and others may have made functions, operators and views of the same names. It is
not set for the session: a pooler gives the session to others afterwards.
"""
_DATABASES = """
    SELECT sum(xact_commit)::bigint, sum(xact_rollback)::bigint,
           sum(blks_hit)::bigint, sum(blks_read)::bigint,
           coalesce(max(stats_reset)::text, '') || ' ' || pg_postmaster_start_time()::text
    FROM pg_stat_database
"""
_LOG = """
    SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END
            - '0/0')::bigint
"""
"""The log position: covers the bytes of pg_stat_wal, but without delay or resets."""
_STARTED = "SELECT pg_catalog.pg_postmaster_start_time()"
_CHECKPOINTS_SINCE_17 = "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
_CHECKPOINTS_BEFORE_17 = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"


def read(dsn: str) -> Reading:
    """One reading; sessions report their transactions up to a second late.

    Raises:
        UnreadableError: with the reason.
    """
    require_well_formed(dsn)
    with unreadable(), psycopg.connect(dsn, connect_timeout=CONNECT_S, application_name="tierwise") as opened:
        return read_from(opened)


def read_from(connection: psycopg.Connection[Any]) -> Reading:
    """The same over an open connection, in three statements."""
    since_17 = connection.info.server_version >= 170_000
    ((commits, rollbacks, hits, reads, reset),) = rows_of(connection, _DATABASES)
    ((log_bytes,),) = rows_of(connection, _LOG)
    ((checkpoints,),) = rows_of(connection, _CHECKPOINTS_SINCE_17 if since_17 else _CHECKPOINTS_BEFORE_17)
    counts = {
        "commits": commits,
        "rollbacks": rollbacks,
        "page_hits": hits,
        "page_reads": reads,
        "log_bytes": log_bytes,
        "checkpoints": checkpoints,
    }
    return Reading({name: int(count or 0) for name, count in counts.items()}, str(reset))


def server_of(connection: psycopg.Connection[Any]) -> str:
    """The same text for all sessions of one server until it is restarted, and another one elsewhere."""
    rows = rows_of(connection, _STARTED)
    return str(rows[0][0]) if rows else ""


def rows_of(connection: psycopg.Connection[Any], sql: str) -> list[Any]:
    """Rows of one statement, in which names mean PostgreSQL's own objects only."""
    cursor = connection.execute((_SAFELY + sql).encode(), prepare=False)
    while cursor.nextset():
        pass
    return cursor.fetchall() if cursor.description else []


def require_well_formed(dsn: str) -> None:
    """Refuse a malformed DSN.

    Raises:
        UnreadableError: without any part of it, which the driver would repeat.
    """
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise UnreadableError(MALFORMED, MALFORMED) from None


@contextmanager
def unreadable() -> Iterator[None]:
    """Turn the driver's errors into :class:`UnreadableError`."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise UnreadableError(DENIED, _line(error)) from None
    except psycopg.OperationalError as error:
        raise UnreadableError(LOST, _line(error)) from None
    except psycopg.Error as error:
        raise UnreadableError(REFUSED, _line(error)) from None


def transactions(counts: Mapping[str, int]) -> int:
    """Transactions that ended; a statement outside any transaction counts as one."""
    return counts["commits"] + counts["rollbacks"]


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
