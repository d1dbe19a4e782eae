"""Database engines: start, placement of files, counters, waits.

Not here: workloads; an engine knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tierwise.lab.engines.base import Clients, Engine, Limits
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require
from tierwise.model.names import one_of

__all__ = ["Clients", "Engine", "Limits", "create", "names"]


# Each factory imports its module on demand: an embedded engine's worker runs within the measured memory and
# must not load the other engines.


def _postgres(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.postgres.binaries import embedded
    from tierwise.lab.engines.postgres.engine import PostgresEngine

    return PostgresEngine(name, embedded(), settings)


def _postgres_system(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.postgres.binaries import system
    from tierwise.lab.engines.postgres.engine import PostgresEngine

    return PostgresEngine(name, system(), settings)


def _duckdb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.duckdb.engine import DuckEngine

    return DuckEngine(name, settings)


def _rocksdb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.rocksdb.engine import RocksEngine

    return RocksEngine(name, settings)


def _sqlite(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.sqlite.engine import SqliteEngine

    return SqliteEngine(name, settings)


def _mariadb(name: str, settings: Mapping[str, str]) -> Engine:
    from tierwise.lab.engines.mariadb.binaries import installed
    from tierwise.lab.engines.mariadb.engine import MariadbEngine

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
    """Create an engine by its name in a study, with settings for its server; nothing is started yet.

    Raises:
        TierwiseError: if the name is unknown, or the engine or its extra is not installed.
    """
    if name not in _ENGINES:
        raise TierwiseError(f"engine {name!r} is unknown", one_of(name, _ENGINES))
    require(name.removesuffix("-system"), f"engine {name}")
    return _ENGINES[name](name, settings or {})
