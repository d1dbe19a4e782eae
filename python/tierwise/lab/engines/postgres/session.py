"""Sessions of a PostgreSQL server and of the load of commits, the check of its files, its errors in one line.

The superuser's sessions are in :data:`CONTROL`, which the load's account may not enter. They look names up
in ``pg_catalog`` alone, whatever ``ALTER DATABASE`` or ``ALTER ROLE`` set. In the load's database, everything
runs as :data:`CLIENT`: schema, load, catalogue, checks. So no statement, function, operator or index of a
workload is ever evaluated with more rights than the workload has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tierwise.lab.engines.commits import CommitSession, SqlCommitSession
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg
from tierwise.results.faults import IntegrityCheck

_GRAVE = re.compile(
    r"(?:PANIC|FATAL):\s+(.*)|(?:initdb: error: |LOG:\s+(?=.* was terminated by signal))(.*)"
    r"|.*(No space left on device).*"
)
_HARMLESS = re.compile(
    r"the database system is (starting up|shutting down|not yet accepting connections)"
    r"|connection to client lost|terminating (connection|walsender process) due to administrator command"
)
"""Messages about sessions that connect too early or too late, or disconnect: they report no loss."""

_ABORTED = re.compile(r"was terminated by signal 6\b")
_UNKNOWN = re.compile(r'unrecognized configuration parameter "(?P<name>[^"]*)"')
_HINT = re.compile(r"HINT:\s+(.*)")
_BAD_VALUE = re.compile(
    r'(?:invalid value for parameter|parameter|invalid|.* valid range for parameter) "(?P<name>\w+)".*'
)

_FIXES: Sequence[tuple[str, str]] = (
    (r"No space left on device|disk full", "give the device of that role more space, or load less"),
    (r"Address already in use|could not create any", "stop the other server, or choose another port"),
    (r'lock file "[^"]*" already exists', "stop the server that uses it, or choose another port"),
    (r"Permission denied|not permitted", "let the user of the server enter the directory: chmod o+x"),
    (r"shared memory|Cannot allocate memory|out of memory", "ask for less memory, as shared_buffers"),
)
"""Fixes by a pattern of the message; the first match counts."""


def grave_lines(log: str) -> list[str]:
    """Messages of a server's or initdb's log that report a loss, oldest first."""
    matches = (_GRAVE.search(line) for line in log.splitlines())
    messages = [
        next(part for part in (*match.groups()[:2], match.group()) if part) for match in matches if match
    ]
    return [message for message in messages if not _HARMLESS.match(message)]


def explain(what: str, log: str) -> TierwiseError:
    """The error to raise when a program of PostgreSQL failed with this log.

    Args:
        what: the failed action, such as ``engine postgres cannot start``.
    """
    messages = grave_lines(log) or log.strip().splitlines() or ["no message"]
    # After a PANIC the server also reports that the process has aborted.
    last = messages[-2] if len(messages) > 1 and _ABORTED.search(messages[-1]) else messages[-1]
    if unknown := _UNKNOWN.search(last):
        message = f"{what}: setting {unknown['name']} is unknown to this server"
        return TierwiseError(message, "leave it out, or use a version that has it")
    if bad := _BAD_VALUE.match(last):
        fix = ". ".join(["choose a value that the server takes", *_HINT.findall(log)[-1:]])
        return TierwiseError(f"{what}: setting {bad['name']}: {last}", fix.removesuffix("."))
    return TierwiseError(f"{what}: {last}", fix_for(last))


def fix_for(message: str) -> str:
    """The user's fix for a message of the server."""
    for pattern, fix in _FIXES:
        if re.search(pattern, message):
            return fix
    return "mend what the message names"


SUPERUSER = "tierwise"
CLIENT = "tierwise_client"
"""Account of the load's sessions."""
DATABASE = "postgres"
"""The load's database."""
CHECKS = "tierwise_checks"
"""Schema of the functions of amcheck in the load's database."""
CONTROL = "template1"
"""Database of the superuser's sessions, whose commits do not count as the load's."""
CATALOGUE_ONLY = "options='-c search_path=pg_catalog'"
"""For the superuser: in the startup packet, so that it precedes all settings of databases and accounts."""


class PostgresSession:
    """A connection on which each statement commits by itself."""

    def __init__(
        self, engine: str, connection: psycopg.Connection[Any], failure: Callable[[], str | None]
    ) -> None:
        """Take over a connection.

        Args:
            engine: its name, for messages.
            connection: in autocommit.
            failure: gives the last severe line of the server's log.
        """
        self._engine = engine
        self._connection = connection
        self._failure = failure

    def query(self, sql: str) -> list[Any]:
        """Run one statement and give its rows."""
        cursor = self._execute(sql)
        return cursor.fetchall() if cursor.description else []

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """Run one query and give its rows by column."""
        cursor = self._execute(sql)
        columns = [column.name for column in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _execute(self, sql: str) -> psycopg.Cursor[Any]:
        try:
            return self._connection.execute(sql.encode())
        except psycopg.Error as error:
            message = (self._connection.broken and self._failure()) or str(error).splitlines()[0]
            raise TierwiseError(f"engine {self._engine}: {message}", fix_for(message)) from error


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
