"""Server-wide counters of PostgreSQL: a recording covers all its databases."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tierwise.capture.counter_reading import DENIED, LOST, MALFORMED, REFUSED, Reading, UnreadableError

_CONNECT_S = 5
_DATABASES = """
    SELECT sum(xact_commit)::bigint, sum(xact_rollback)::bigint,
           sum(blks_hit)::bigint, sum(blks_read)::bigint,
           coalesce(max(stats_reset)::text, '')
    FROM pg_stat_database
"""
_LOG = """
    SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END
            - '0/0')::bigint
"""
"""The log position: covers the bytes of pg_stat_wal, but without delay or resets."""
_CHECKPOINTS_SINCE_17 = "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
_CHECKPOINTS_BEFORE_17 = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"


def read(dsn: str) -> Reading:
    """One reading; sessions report their transactions up to a second late.

    Raises:
        UnreadableError: with the reason.
    """
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise UnreadableError(MALFORMED, MALFORMED) from None  # the driver would repeat parts of it
    try:
        with psycopg.connect(dsn, connect_timeout=_CONNECT_S, application_name="tierwise") as connection:
            since_17 = connection.info.server_version >= 170_000
            databases = connection.execute(_DATABASES).fetchone()
            log = connection.execute(_LOG).fetchone()
            checkpoints = connection.execute(
                _CHECKPOINTS_SINCE_17 if since_17 else _CHECKPOINTS_BEFORE_17
            ).fetchone()
    except psycopg.errors.InsufficientPrivilege as error:
        raise UnreadableError(DENIED, _line(error)) from None
    except psycopg.OperationalError as error:
        raise UnreadableError(LOST, _line(error)) from None
    except psycopg.Error as error:
        raise UnreadableError(REFUSED, _line(error)) from None
    if databases is None or log is None or checkpoints is None:
        raise UnreadableError(REFUSED, "an empty answer")
    commits, rollbacks, hits, reads, reset = databases
    counts = {
        "commits": commits,
        "rollbacks": rollbacks,
        "page_hits": hits,
        "page_reads": reads,
        "log_bytes": log[0],
        "checkpoints": checkpoints[0],
    }
    return Reading({name: int(count or 0) for name, count in counts.items()}, str(reset))


def transactions(counts: Mapping[str, int]) -> int:
    """Transactions that ended; a statement outside any transaction counts as one."""
    return counts["commits"] + counts["rollbacks"]


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
