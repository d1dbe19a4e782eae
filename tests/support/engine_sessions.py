"""Sessions of tierwise's own servers: the superuser's, which a workload never gets, and the load's."""

from __future__ import annotations

from typing import Any

import pymysql

from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.engines.postgres.server import PORT


def superuser_dsn(engine: PostgresEngine) -> str:
    """Keywords and values of a superuser in the load's database, where tierwise itself has none."""
    server = engine._known_process()
    address = f"host='{server.home}' port={PORT} user=tierwise dbname=postgres"
    return f"{address} password={server.secrets['PGPASSWORD']}"


def root_of(engine: MariadbEngine) -> pymysql.Connection[Any]:
    """A session of MariaDB's root."""
    return engine._known_process().connect()


def client_of(engine: MariadbEngine, **options: Any) -> pymysql.Connection[Any]:
    """A session of the load's account in MariaDB."""
    address = dict(word.split("=", 1) for word in engine._known_process().address.split())
    return pymysql.connect(
        unix_socket=address["socket"],
        user=address["user"],
        password=address["password"],
        database=address["dbname"],
        **options,
    )
