"""Sessions of the load of commits, and PostgreSQL's own check of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tierwise.engines.commits import CommitSession, SqlCommitSession
from tierwise.engines.postgres.session import CHECKS
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg
from tierwise.results.faults import IntegrityCheck

_LASTING = "relation.relpersistence = 'p'"
_HEAP = f"""
    SELECT relation.relname || ', block ' || problem.blkno || ': ' || problem.msg
    FROM pg_catalog.pg_class AS relation, LATERAL {CHECKS}.verify_heapam(relation.oid::regclass) AS problem
    WHERE relation.relkind IN ('r', 'm', 't') AND {_LASTING}
"""
_INDEXES = f"""
    SELECT {CHECKS}.bt_index_check(relation.oid, heapallindexed => true)
    FROM pg_catalog.pg_class AS relation JOIN pg_catalog.pg_am AS method ON method.oid = relation.relam
    WHERE relation.relkind = 'i' AND method.amname = 'btree' AND {_LASTING}
"""
"""The statements of pg_amcheck --heapallindexed, without a process."""
_FULL_READ = "SELECT (SELECT count(body) FROM item), (SELECT count(number) FROM done)"


def commit_session(dsn: str) -> CommitSession:
    """Open a session.

    Raises:
        TierwiseError: from it, where the server or its disk fails.
    """
    try:
        connection = psycopg.connect(dsn, autocommit=True)
    except psycopg.Error as error:
        raise _failure(error) from error

    def execute(sql: str) -> Sequence[Any]:
        try:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise _failure(error) from error

    return SqlCommitSession(execute, connection.close)


def run_check(query: Callable[[str], list[Any]]) -> IntegrityCheck:
    """Check heap and B-trees; without the extension amcheck, read all rows, which verifies page checksums."""
    sums = f"data checksums {query('SHOW data_checksums')[0][0]}"
    if not query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'amcheck'"):
        return _checked(f"full read, {sums}", lambda: query(_FULL_READ) and [])
    return _checked(
        f"amcheck, {sums}", lambda: [str(row[0]) for row in query(_HEAP)] + (query(_INDEXES) and [])
    )


def _checked(name: str, find: Callable[[], list[str]]) -> IntegrityCheck:
    try:
        return IntegrityCheck(name=name, problems=find())
    except TierwiseError as error:
        return IntegrityCheck(name=name, problems=[error.message])


def _failure(error: psycopg.Error) -> TierwiseError:
    message = next(iter(str(error).splitlines()), type(error).__name__)
    return TierwiseError(f"engine postgres: {message}", "see the server's log")
