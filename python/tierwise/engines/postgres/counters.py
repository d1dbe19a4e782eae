"""PostgreSQL's counters, under the names that all engines share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierwise.engines.postgres.session import DATABASE
from tierwise.results.measurements import Counters, SpaceUse

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

_SPACE = """
    SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint,
           coalesce(sum(pg_catalog.pg_table_size(c.oid)), 0)::bigint,
           coalesce(sum(pg_catalog.pg_indexes_size(c.oid)), 0)::bigint,
           nullif(sum(pg_catalog.pg_stat_get_live_tuples(c.oid)), 0)::bigint
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""

Ask = Callable[[str], list[dict[str, Any]]]
"""Runs a statement and gives its rows by column."""


def read_counters(ask: Ask, major_version: int, cpu_s: float | None) -> Counters:
    """One reading; connected sessions may report up to a second late."""
    (shared,) = ask(_SHARED)
    (pages,) = ask(_pages_query(major_version))
    if major_version <= 16:
        pages |= {"physical_reads": pages["pages_read"], "physical_writes": pages["pages_written"]}
    return Counters(cpu_s=cpu_s, **shared, **pages)


def _pages_query(major_version: int) -> str:
    if major_version >= 18:
        return _SINCE_18
    return _UP_TO_16 if major_version <= 16 else _PAGES_OF_17


def read_space(query: Callable[[str], list[Any]]) -> SpaceUse:
    """Space of tables with their TOAST, and of indexes; without the catalogue. ``rows`` is an estimate."""
    reserved, data, index, rows = query(_SPACE)[0]
    return SpaceUse(rows=rows, reserved_bytes=reserved, data_bytes=data, index_bytes=index)
