"""Sessions of a MariaDB server and of the load of commits, and the check of its tables.

root's sessions have no current schema, and their statements name no object of the load. In the load's
schema, everything runs as :data:`CLIENT`: schema, load, statistics, checks. So no routine, trigger, view or
event of a workload ever runs with more rights than the workload has.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tierwise.lab.engines.commits import SQL_TABLES, CommitSession, SqlCommitSession
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.results.faults import IntegrityCheck

CLIENT = "tierwise_client"
"""Account of the load's sessions, which identifies them."""
ROOT = "root"

_FIXES = (
    (
        r"No space left on device|is full|errno: 28\b|Error number 28|Disk full",
        "give the device of that role more space, or load less",
    ),
    (r"Permission denied|errno: 13\b", "let the user of the server enter the directory: chmod o+x"),
    (r"Cannot allocate memory", "ask for less memory, as innodb_buffer_pool_size"),
)


class MariadbSession:
    """A connection on which each statement commits by itself."""

    def __init__(
        self, engine: str, connection: pymysql.Connection[Any], failure: Callable[[], str | None]
    ) -> None:
        """Take over a connection.

        Args:
            engine: its name, for messages.
            connection: with autocommit.
            failure: gives the last severe line of the server's log.
        """
        self._engine = engine
        self._connection = connection
        self._failure = failure

    @property
    def number(self) -> int:
        """Its id in the server's list of sessions."""
        return int(self._connection.thread_id())  # type: ignore[no-untyped-call]

    def query(self, sql: str) -> list[Any]:
        """Run one statement and give its rows."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            message = (not self._connection.open and self._failure()) or first_line(error)
            raise TierwiseError(f"engine {self._engine}: {message}", fix_for(message)) from error

    def close(self) -> None:
        """End the session."""
        with contextlib.suppress(pymysql.MySQLError):
            self._connection.close()


def fix_for(message: str) -> str:
    """The user's fix for a message of the server."""
    for pattern, fix in _FIXES:
        if re.search(pattern, message):
            return fix
    return "mend what the message names"


def first_line(error: pymysql.MySQLError) -> str:
    """The server's message."""
    text = str(error.args[1] if len(error.args) > 1 else error)
    return text.splitlines()[0] if text else type(error).__name__


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
