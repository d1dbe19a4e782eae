"""Client programs from other projects, one file for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tierwise.lab.validation.clients.db_bench import DbBench
from tierwise.lab.validation.clients.duckdb_tpch import DuckdbTpch
from tierwise.lab.validation.clients.go_tpc import GoTpc
from tierwise.lab.validation.clients.pgbench import Pgbench
from tierwise.lab.validation.clients.server_jobs import MariadbJob, PostgresJob
from tierwise.lab.validation.clients.sqlite_shell import SqliteShell
from tierwise.lab.validation.clients.sysbench import Sysbench
from tierwise.lab.validation.clients.validation_client import ValidationClient
from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix

__all__ = ["ValidationClient", "client_class"]

_BY_NAME: Mapping[str, type[ValidationClient[Any]]] = {
    client.family: client
    for client in (
        Pgbench,
        Sysbench,
        GoTpc,
        DbBench,
        SqliteShell,
        DuckdbTpch,
        PostgresJob,
        MariadbJob,
    )
}


def client_class(name: str) -> type[ValidationClient[Any]]:
    """The class of a family of clients."""
    if name not in _BY_NAME:
        raise TierwiseError(f"there is no client {name!r}", unknown_name_fix(name, sorted(_BY_NAME)))
    return _BY_NAME[name]
