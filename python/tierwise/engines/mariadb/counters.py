"""MariaDB's counters, under the names that all engines share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierwise.engines.mariadb.files import DATABASE
from tierwise.results.measurements import Counters, SpaceUse

_STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb%'"
_COMMITS = """
    SELECT count FROM information_schema.innodb_metrics
    WHERE name IN ('trx_rw_commits', 'trx_ro_commits', 'trx_nl_ro_commits')
"""
_RESERVED = f"""
    SELECT coalesce(sum(allocated_size), 0) FROM information_schema.innodb_sys_tablespaces
    WHERE name LIKE '{DATABASE}/%'
"""
_TABLES = f"""
    SELECT table_name, table_rows, data_length, index_length FROM information_schema.tables
    WHERE table_schema = '{DATABASE}' AND table_type = 'BASE TABLE'
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


def read_space(query: Query, client: Query) -> SpaceUse:
    """Space of all tables of the load, after updating their statistics. ``rows`` is an estimate.

    Args:
        query: runs a statement as root, who alone may see the sizes of files.
        client: runs a statement as the load's account.
    """
    for table, *_ in client(_TABLES):
        quoted = table.replace("`", "``")
        client(f"ANALYZE TABLE `{quoted}`")
    reserved = int(query(_RESERVED)[0][0])
    tables = client(_TABLES)
    data, indexes = (sum(int(table[column] or 0) for table in tables) for column in (2, 3))
    return SpaceUse(
        rows=sum(int(rows or 0) for _, rows, *_ in tables) if tables else None,
        reserved_bytes=reserved,
        data_bytes=data,
        index_bytes=indexes,
        unused_bytes=max(0, reserved - data - indexes),
    )
