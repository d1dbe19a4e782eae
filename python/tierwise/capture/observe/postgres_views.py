"""Statistics views of PostgreSQL by version, and sizes of files by role."""

from __future__ import annotations

_STAT_WAL, _STAT_IO, _WAL_IN_STAT_IO = 140_000, 160_000, 180_000

_TABLES = """
    SELECT coalesce((SELECT stats_reset::text FROM pg_stat_database WHERE datname = current_database()), ''),
           json_build_object(
               'heap_reads', coalesce(sum(heap_blks_read + coalesce(toast_blks_read, 0)), 0)::bigint,
               'index_reads', coalesce(sum(idx_blks_read), 0)::bigint)
    FROM pg_statio_user_tables
"""
_TEMP = """
    SELECT coalesce(max(stats_reset)::text, ''),
           json_build_object('temp_bytes', coalesce(sum(temp_bytes), 0)::bigint)
    FROM pg_stat_database
"""
_WAL = """
    SELECT coalesce(stats_reset::text, ''),
           json_build_object('log_flushes', wal_sync,
                             'log_flush_us', CASE WHEN current_setting('track_wal_io_timing')::boolean
                                                  THEN (wal_sync_time * 1000)::bigint END)
    FROM pg_stat_wal
"""
_IO = """
    SELECT coalesce(max(stats_reset)::text, ''),
           json_build_object(
               'page_reads', sum(reads) FILTER (WHERE backend_type = 'client backend'),
               'page_writes', sum(coalesce(writes, 0) + coalesce(extends, 0)))
    FROM pg_stat_io WHERE object = 'relation'
"""
_IO_WAL = """
    SELECT coalesce(max(stats_reset)::text, ''),
           json_build_object('log_flushes', sum(fsyncs),
                             'log_flush_us', CASE WHEN current_setting('track_wal_io_timing')::boolean
                                                  THEN (sum(fsync_time) * 1000)::bigint END)
    FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'
"""

SIZES = """
    SELECT json_build_object(
               'data', sum(bytes) FILTER (WHERE NOT own AND kind <> 'i' AND NOT temporary),
               'index', sum(bytes) FILTER (WHERE NOT own AND kind = 'i' AND NOT temporary),
               'temp', sum(bytes) FILTER (WHERE temporary),
               'system', sum(bytes) FILTER (WHERE own),
               'log', (SELECT sum(size) FROM pg_ls_waldir())),
           (SELECT coalesce(sum(pg_database_size(oid)), 0) FROM pg_database
            WHERE datname <> current_database() AND NOT datistemplate AND datname <> 'postgres'),
           (SELECT count(*) FROM pg_database
            WHERE datname <> current_database() AND NOT datistemplate AND datname <> 'postgres')
    FROM (
        SELECT relkind AS kind, oid < 16384 AS own, relpersistence = 't' AS temporary,
               (SELECT sum(coalesce(pg_relation_size(oid, fork), 0))
                FROM unnest(ARRAY['main', 'fsm', 'vm', 'init']) AS fork) AS bytes
        FROM pg_class WHERE relkind IN ('r', 'm', 't', 'i', 'S')
    ) AS files
"""
"""Bytes by role of the connected database; then bytes and number of the others."""


def views_of(number: int, version: str) -> tuple[list[str], list[str]]:
    """Statements that read the views of a version: each gives its last reset and counts by name.

    Args:
        number: ``server_version_num``.
        version: for people.

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
