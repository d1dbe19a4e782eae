"""Database engines: lifecycle, placement, counters, waits."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from tierwise.engines.base import Clients, Engine, Limits
from tierwise.errors import TierwiseError

__all__ = ["Clients", "Engine", "Limits", "create", "names"]


# Each imports its module when it is asked for: the worker of an embedded engine lives within the memory that
# is measured, and needs none of the others.


def _postgres(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.postgres import PostgresEngine
    from tierwise.engines.postgres_binaries import embedded

    return PostgresEngine(name, embedded(), settings)


def _postgres_system(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.postgres import PostgresEngine
    from tierwise.engines.postgres_binaries import system

    return PostgresEngine(name, system(), settings)


def _duckdb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.duckdb_engine import DuckEngine

    return DuckEngine(name, settings)


def _rocksdb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.rocksdb import RocksEngine

    return RocksEngine(name, settings)


def _sqlite(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.sqlite import SqliteEngine

    return SqliteEngine(name, settings)


def _mariadb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.engines.mariadb import MariadbEngine
    from tierwise.engines.mariadb_binaries import installed

    return MariadbEngine(name, installed(), settings)


_ENGINES: Mapping[str, Callable[[str, Mapping[str, str]], Engine]] = {
    "postgres": _postgres,
    "postgres-system": _postgres_system,
    "mariadb": _mariadb,
    "sqlite": _sqlite,
    "rocksdb": _rocksdb,
    "duckdb": _duckdb,
}


def names() -> list[str]:
    """Names that a study may use."""
    return list(_ENGINES)


def create(name: str, settings: Mapping[str, str] | None = None) -> Engine:
    """An engine by its name in a study, with settings for its server; nothing is started yet.

    Raises:
        TierwiseError: if the name is unknown, or the engine is not installed.
    """
    if name not in _ENGINES:
        near = difflib.get_close_matches(name, _ENGINES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise TierwiseError(f"engine {name!r} is unknown", f"{hint}use one of {', '.join(_ENGINES)}")
    return _ENGINES[name](name, settings or {})
