"""Servers with accounts that see their counters (``watcher``) or their sessions too (``monitor``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in
from support.engine_sessions import root_of, superuser_dsn
from tierwise.capture.sql_session import Dsn, parse_dsn
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.placement import Role

SECRET = "planted-9f3a"
"""Password of both accounts."""
WATCHED = {"performance_schema": "ON", "performance_schema_consumer_events_waits_current": "ON"}
"""Settings of a MariaDB that watches its sessions."""


@contextmanager
def watched_postgres() -> Iterator[PostgresEngine]:
    """A PostgreSQL with the table ``part``, which the load's account may write."""
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres(), {}) as engine:
        engine.init(places_in(directory, engine.roles))
        engine.start()
        with administrator(engine) as connection:
            connection.execute(f"CREATE ROLE watcher LOGIN PASSWORD '{SECRET}'")
            connection.execute(f"CREATE ROLE monitor LOGIN PASSWORD '{SECRET}' IN ROLE pg_monitor")
        engine.execute_schema([(Role.DATA, "CREATE TABLE part (id integer)")])
        yield engine


@contextmanager
def watched_mariadb(settings: dict[str, str]) -> Iterator[MariadbEngine]:
    """A MariaDB with the same."""
    if reason := CASES[0].missing():
        pytest.skip(reason)
    with open_directory() as directory, MariadbEngine("mariadb", installed_mariadb(), settings) as engine:
        engine.init(places_in(directory, engine.roles))
        engine.start()
        with root_of(engine) as connection, connection.cursor() as cursor:
            for user in ("watcher", "monitor"):
                cursor.execute(f"CREATE USER {user}@localhost IDENTIFIED BY '{SECRET}'")
            cursor.execute("GRANT PROCESS ON *.* TO monitor@localhost")
            cursor.execute("GRANT SELECT ON performance_schema.* TO monitor@localhost")
            cursor.execute("CREATE TABLE tierwise.part (id integer) ENGINE = InnoDB")
        yield engine


def administrator(engine: PostgresEngine) -> psycopg.Connection[tuple[object, ...]]:
    """A superuser's session in which each statement commits by itself."""
    return psycopg.connect(superuser_dsn(engine), autocommit=True)


def dsn_of(engine: PostgresEngine | MariadbEngine, user: str = "watcher") -> Dsn:
    """A DSN by way of the server's socket."""
    if isinstance(engine, MariadbEngine):
        socket = quote(engine.settings()["socket"])
        return parse_dsn(f"mysql://{user}:{SECRET}@localhost?unix_socket={socket}", "test")
    words = dict(word.split("=") for word in engine.dsn().replace("'", "").split())
    return parse_dsn(
        f"host={words['host']} port={words['port']} dbname={words['dbname']} user={user} password={SECRET}",
        "test",
    )


def commit(address: str, times: int) -> None:
    """Commit that many inserts as the load's account of PostgreSQL."""
    with psycopg.connect(address) as connection:
        for number in range(times):
            connection.execute("INSERT INTO part VALUES (%s)", [number])
            connection.commit()
