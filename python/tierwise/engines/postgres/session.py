"""Sessions of a PostgreSQL server, each with the rights of one account and in one database.

The superuser's sessions are in :data:`CONTROL`, which the load's account may not enter. They look names up
in ``pg_catalog`` alone, whatever ``ALTER DATABASE`` or ``ALTER ROLE`` set. In the load's database, everything
runs as :data:`CLIENT`: schema, load, catalogue, checks. So no statement, function, operator or index of a
workload is ever evaluated with more rights than the workload has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tierwise.engines.postgres.errors import fix_for
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg

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
