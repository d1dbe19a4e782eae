"""PostgreSQL's counters, and the waits of its sessions, under the names that all engines share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierwise.capture.postgres_waits import classify_session
from tierwise.host.cpu import process_cpu_s
from tierwise.lab.engines.postgres.server import DATABASE
from tierwise.model.extras import psycopg
from tierwise.results import WaitClass
from tierwise.results.measurements import Counters

_SHARED = f"""
    SELECT pg_catalog.current_setting('block_size')::bigint AS page_bytes,
           (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::bigint AS log_bytes,
           (SELECT wal_fpi FROM pg_catalog.pg_stat_wal) * pg_catalog.current_setting('block_size')::bigint
               AS doublewrite_bytes,
           sum(blks_hit + blks_read)::bigint AS logical_reads,
           sum(temp_bytes)::bigint AS temp_bytes,
           sum(xact_commit) FILTER (WHERE datname = '{DATABASE}')::bigint AS commits
    FROM pg_catalog.pg_stat_database
"""

_SINCE_18 = """
    SELECT sum(reads)::bigint AS physical_reads,
           (sum(read_bytes) / pg_catalog.current_setting('block_size')::bigint)::bigint AS pages_read,
           (sum(writes) + sum(extends))::bigint AS physical_writes,
           ((sum(write_bytes) + sum(extend_bytes)) / pg_catalog.current_setting('block_size')::bigint)::bigint
               AS pages_written
    FROM pg_catalog.pg_stat_io WHERE object = 'relation'
"""

_UP_TO_16 = """
    SELECT (SELECT sum(blks_read)::bigint FROM pg_catalog.pg_stat_database) AS pages_read,
           buffers_checkpoint + buffers_clean + buffers_backend AS pages_written
    FROM pg_catalog.pg_stat_bgwriter
"""
"""These versions read and write one page at a time; backends' writes include file extensions."""

_PAGES_OF_17 = "SELECT sum(blks_read)::bigint AS pages_read FROM pg_catalog.pg_stat_database"

Ask = Callable[[str], list[dict[str, Any]]]
"""Runs a statement and gives its rows by column."""


def read_counters(ask: Ask, major_version: int, cpu_s: float | None) -> Counters:
    """One reading; connected sessions may report up to a second late."""
    (shared,) = ask(_SHARED)
    (pages,) = ask(_SINCE_18 if major_version >= 18 else _PAGES_OF_17 if major_version == 17 else _UP_TO_16)
    if major_version <= 16:
        pages |= {"physical_reads": pages["pages_read"], "physical_writes": pages["pages_written"]}
    return Counters(cpu_s=cpu_s, **shared, **pages)


CLIENT_APPLICATION = "tierwise-client"
"""The application_name of the load's sessions."""

_MOST_SESSIONS = 50
"""Most sessions sampled in one tick, chosen at random; bounds the cost of a tick."""

_QUERY = f"""
    SELECT state, wait_event_type, wait_event, process_state, count(*)
    FROM (
        SELECT state, wait_event_type, wait_event,
               pg_catalog.split_part(
                   pg_catalog.pg_read_file('/proc/' || pid || '/stat', 0, 40, true), ' ', 3) AS process_state
        FROM (
            SELECT * FROM pg_catalog.pg_stat_get_activity((SELECT NULL::integer FROM pg_catalog.pg_sleep(%s)))
            WHERE application_name = '{CLIENT_APPLICATION}' AND backend_type = 'client backend'
            ORDER BY pg_catalog.random() LIMIT {_MOST_SESSIONS}
        ) AS chosen
    ) AS seen
    GROUP BY 1, 2, 3, 4
"""
"""The server waits, then reads its session table, then asks the kernel about the process of each session.

The sub-select fixes the order: an argument is evaluated before the function is called.
"""


class PostgresWaitProbe:
    """Reads pg_stat_activity with one prepared statement over a separate connection."""

    def __init__(self, dsn: str) -> None:
        """Connect; the sampled sessions need not exist yet."""
        self._connection = psycopg.connect(dsn, autocommit=True, application_name="tierwise-sampler")
        self._cursor = self._connection.cursor()

    def sample_waits(self, delay_s: float) -> list[WaitClass]:
        """One class for each session of the load, for at most 50 sessions."""
        try:
            self._cursor.execute(_QUERY, [delay_s], prepare=True)
        except psycopg.errors.InternalError:
            # A session ended between the read of the session table and the read of its process.
            return []
        return [name for *seen, sessions in self._cursor for name in [classify_session(*seen)] * sessions]

    def cpu_s(self) -> float:
        """CPU seconds of the server process behind the connection."""
        return process_cpu_s(self._connection.info.backend_pid) or 0.0

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()
