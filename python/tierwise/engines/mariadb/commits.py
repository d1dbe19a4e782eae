"""Sessions of the load of commits, and MariaDB's own check of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tierwise.engines.commits import SQL_TABLES, CommitSession, SqlCommitSession
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.results.faults import IntegrityCheck

ResultT = TypeVar("ResultT")


def commit_session(connect: Callable[[], pymysql.Connection[Any]]) -> CommitSession:
    """Open a session.

    Raises:
        TierwiseError: from it, where the server or its disk fails.
    """
    connection = _named(connect)

    def execute(sql: str) -> Sequence[Any]:
        with connection.cursor() as cursor:
            _named(lambda: cursor.execute(sql))
            return list(cursor.fetchall())

    return SqlCommitSession(execute, lambda: connection.close() if connection.open else None)


def run_check(query: Callable[[str], list[Any]]) -> IntegrityCheck:
    """CHECK TABLE of the load's tables."""
    rows = query(f"CHECK TABLE {', '.join(SQL_TABLES)} EXTENDED")
    problems = [f"{table}: {text}" for table, _, kind, text in rows if (kind, text) != ("status", "OK")]
    return IntegrityCheck(name="CHECK TABLE EXTENDED", problems=problems)


def _named(call: Callable[[], ResultT]) -> ResultT:
    try:
        return call()
    except (pymysql.MySQLError, OSError) as error:
        raise TierwiseError(f"engine mariadb: {error}", "see the server's log") from error
