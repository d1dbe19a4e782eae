"""Database engines: start, placement of files, counters, waits.

Not here: workloads; an engine knows none.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tierwise.lab.engines.base import Engine
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.names import unknown_name_fix

__all__ = ["Engine", "create_engine", "engine_names"]


_ENGINES: Mapping[str, tuple[str, str | None]] = {
    "postgres": ("postgres.engine:PostgresEngine", "postgres.binaries:embedded_postgres"),
    "postgres-system": ("postgres.engine:PostgresEngine", "postgres.binaries:system_postgres"),
    "mariadb": ("mariadb.engine:MariadbEngine", "mariadb.binaries:installed_mariadb"),
    "sqlite": ("sqlite.engine:SqliteEngine", None),
    "rocksdb": ("rocksdb.engine:RocksEngine", None),
    "duckdb": ("duckdb.engine:DuckDbEngine", None),
}
"""Name in a study -> the class, and for a server what finds its programs.

They are imported on demand: an embedded engine's worker runs within the measured memory and must not load the
other engines.
"""


def engine_names() -> list[str]:
    """Names that a study may use."""
    return list(_ENGINES)


def engine_family(name: str) -> str:
    """The engine that one of another installation is, or the engine itself."""
    return name.removesuffix("-system")


def create_engine(name: str, settings: Mapping[str, str] | None = None) -> Engine:
    """Create an engine by its name in a study, with settings for its server; nothing is started yet."""
    if name not in _ENGINES:
        raise TierwiseError(f"engine {name!r} is unknown", unknown_name_fix(name, _ENGINES))
    require_extra(engine_family(name), f"engine {name}")
    kind, installation = _ENGINES[name]
    programs = [] if installation is None else [_named(installation)()]
    engine: Engine = _named(kind)(name, *programs, settings or {})
    return engine


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)
