"""What one session over SQL tells about its server: which one it is, its version and its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tierwise import _core
from tierwise.capture import mysql_counters, postgres_counters
from tierwise.capture.counter_reading import UnreadableError
from tierwise.capture.dsn import Dsn
from tierwise.model.extras import psycopg, pymysql


@dataclass(frozen=True)
class ServerSession:
    """A session that was open for a moment.

    Attributes:
        peers: processes at the other end of its connection; none if they cannot be seen from here.
        task: process or thread that served it, as the server itself numbers it; ``None`` if not told.
        system: PostgreSQL's system identifier; ``None`` if not told.
        data_directory: as the server sees it; ``None`` if not told.
        version: of the server.
        settings: those that were asked for, as the server writes them.
    """

    peers: Sequence[int] = ()
    task: int | None = None
    system: str | None = None
    data_directory: str | None = None
    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def session_of(dsn: Dsn, names: Sequence[str], seen: Callable[[ServerSession], None]) -> ServerSession:
    """Open a session, ask, and close it.

    Args:
        dsn: of the server.
        names: settings that are wanted.
        seen: called with the answer while the session is open; it may raise.

    Raises:
        UnreadableError: if the server cannot be reached.
    """
    ask = _of_postgres if dsn.kind == "postgresql" else _of_mysql
    return ask(dsn.text, names, seen)


_ABOUT = """
    SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('server_version'),
           CASE WHEN pg_catalog.pg_has_role('pg_read_all_settings', 'USAGE')
                THEN pg_catalog.current_setting('data_directory') END
"""
_SYSTEM = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
_SETTINGS = "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings"
_NAMES_HOSTS = "synchronous_standby_names"
"""Its value names hosts, so that only whether it is set is kept."""


def _of_postgres(text: str, names: Sequence[str], seen: Callable[[ServerSession], None]) -> ServerSession:
    postgres_counters.require_well_formed(text)
    with (
        postgres_counters.unreadable(),
        psycopg.connect(
            text,
            autocommit=True,
            connect_timeout=postgres_counters.CONNECT_S,
            application_name="tierwise",
        ) as connection,
    ):
        ((task, version, directory),) = postgres_counters.rows_of(connection, _ABOUT)
        settings = {
            name: str(value)
            for name, value in postgres_counters.rows_of(connection, _SETTINGS)
            if name in names
        }
        if settings.get(_NAMES_HOSTS):
            settings[_NAMES_HOSTS] = "set"
        session = ServerSession(
            peers=_peers_of(connection.fileno()),
            task=int(task),
            system=_system_of(connection),
            data_directory=directory,
            version=str(version).split()[0],
            settings=settings,
        )
        seen(session)
    return session


def _system_of(connection: psycopg.Connection[Any]) -> str | None:
    try:
        ((system,),) = postgres_counters.rows_of(connection, _SYSTEM)
    except psycopg.Error:  # the right to call it was taken away
        return None
    return str(system)


_VARIABLES = "SHOW GLOBAL VARIABLES"
_TASKS = (
    "SELECT tid FROM information_schema.processlist WHERE id = connection_id()",
    "SELECT thread_os_id FROM performance_schema.threads WHERE processlist_id = connection_id()",
)
"""The thread of a session, in MariaDB and in MySQL."""


def _of_mysql(text: str, names: Sequence[str], seen: Callable[[ServerSession], None]) -> ServerSession:
    with mysql_counters.unreadable(), mysql_counters.connect(text) as connection:
        with connection.cursor() as cursor:
            cursor.execute(_VARIABLES)
            variables = {str(name): str(value) for name, value in cursor.fetchall()}
            session = ServerSession(
                peers=_peers_of(connection._sock.fileno()),  # type: ignore[attr-defined]
                task=_task_of(cursor),
                data_directory=variables.get("datadir"),
                version=variables.get("version"),
                settings={name: variables[name] for name in names if name in variables},
            )
        seen(session)
    return session


def _task_of(cursor: Any) -> int | None:
    for sql in _TASKS:
        try:
            cursor.execute(sql)
            found = cursor.fetchone()
        except pymysql.MySQLError:
            continue
        if found and found[0]:
            return int(found[0])
    return None


def _peers_of(descriptor: int) -> list[int]:
    return _core.socket_peers(os.fstat(descriptor).st_ino)


__all__ = ["ServerSession", "UnreadableError", "session_of"]
