"""Server-wide counters of MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tierwise.capture.counter_reading import DENIED, LOST, MALFORMED, REFUSED, Reading, UnreadableError
from tierwise.model.extras import pymysql

_TIMEOUT_S = 5
_PORT = 3306
_DATA_STATEMENTS = (
    "Com_select",
    "Com_insert",
    "Com_insert_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_replace",
    "Com_replace_select",
    "Com_load",
)
_STATUS = "SHOW GLOBAL STATUS"
_SERVER = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname', 'port', 'datadir', 'server_uuid')"
_INNODB_TRANSACTIONS = """
    SELECT coalesce(sum(count), 0), count(*) FROM information_schema.innodb_metrics
    WHERE name IN ('trx_rw_commits', 'trx_ro_commits', 'trx_nl_ro_commits', 'trx_rollbacks')
      AND status = 'enabled'
"""
_ALL_ENABLED = 4


def read(dsn: str) -> Reading:
    """One reading.

    Raises:
        UnreadableError: with the reason.
    """
    with unreadable(), connect(dsn) as connection:
        return read_from(connection)


def connect(dsn: str) -> pymysql.Connection[Any]:
    """Connect; raises as :func:`read`."""
    try:
        options = _options(dsn)
    except ValueError:
        raise UnreadableError(MALFORMED, MALFORMED) from None  # the message would repeat parts of it
    with unreadable():
        return pymysql.connect(**options)


@contextmanager
def unreadable() -> Iterator[None]:
    """Turn the driver's errors into :class:`UnreadableError`."""
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        raise _unreadable(error) from None


def read_from(connection: pymysql.Connection[Any]) -> Reading:
    """One reading over an open connection."""
    with connection.cursor() as cursor:
        cursor.execute(_STATUS)
        status = dict(cursor.fetchall())
        innodb = _innodb_transactions(cursor)
    server = server_of(connection)
    requests = _count(status, "Innodb_buffer_pool_read_requests")
    reads = _count(status, "Innodb_buffer_pool_reads")
    counts = {
        "commits": _count(status, "Com_commit"),
        "rollbacks": _count(status, "Com_rollback"),
        "data_statements": sum(_count(status, name) for name in _DATA_STATEMENTS),
        "engine_commits": _count(status, "Handler_commit"),
        "page_hits": max(0, requests - reads),
        "page_reads": reads,
        "log_bytes": _count(status, "Innodb_os_log_written"),
    }
    if innodb is not None:
        counts["innodb_transactions"] = innodb
    # A restart resets the counters, and so does FLUSH STATUS: each has its own clock.
    uptime_s = _count(status, "Uptime")
    flushed_s = uptime_s - int(status.get("Uptime_since_flush_status", uptime_s))
    return Reading(counts, f"{flushed_s} {innodb is None} {server}")


def server_of(connection: pymysql.Connection[Any]) -> str:
    """The same text for all sessions of one server, and another one elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute(_SERVER)
        return " ".join(str(value) for _, value in sorted(cursor.fetchall()))


def transactions(counts: Mapping[str, int]) -> int:
    """Transactions that ended.

    Uses InnoDB's own counters if they are enabled, else the commits and rollbacks that clients request.
    Without such requests, every statement commits by itself. ``Handler_commit`` is unsuitable: it counts each
    statement within a transaction, and with a binary log each commit twice.
    """
    if "innodb_transactions" in counts:
        return counts["innodb_transactions"]
    return counts["commits"] + counts["rollbacks"] or counts["data_statements"]


def _innodb_transactions(cursor: Any) -> int | None:
    """InnoDB's own count; ``None`` if it is disabled, or this user may not read it."""
    try:
        cursor.execute(_INNODB_TRANSACTIONS)
        ((count, enabled),) = cursor.fetchall()
    except pymysql.MySQLError:
        return None
    return int(count) if enabled == _ALL_ENABLED else None


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


def _count(status: Mapping[str, str], name: str) -> int:
    return int(status.get(name, 0))


def _unreadable(error: Exception) -> UnreadableError:
    detail = str(error.args[-1]) if error.args else type(error).__name__
    code = error.args[0] if error.args else None
    codes = pymysql.constants.ER
    if code in (
        codes.ACCESS_DENIED_ERROR,
        codes.DBACCESS_DENIED_ERROR,
        codes.SPECIFIC_ACCESS_DENIED_ERROR,
    ):
        return UnreadableError(DENIED, detail)
    if isinstance(error, pymysql.err.ProgrammingError):
        return UnreadableError(REFUSED, detail)
    return UnreadableError(LOST, detail)
