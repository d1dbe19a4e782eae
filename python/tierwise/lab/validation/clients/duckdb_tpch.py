"""DuckDB with the data and the 22 queries of its TPC-H extension."""

from __future__ import annotations

import importlib.util
import time
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from tierwise.host import programs, python_process
from tierwise.host.programs import FinishedProgram, PrivateDirectory
from tierwise.host.python_process import ProcessCommand
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    ValidationClient,
    caller_cache_directory,
    fetch_program,
    network_variables,
    run_client_program,
    wait_for_client_program,
)
from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary
from tierwise.model.placement import Role

_QUERIES = 22
_CONNECT = "import duckdb, sys; c = duckdb.connect(sys.argv[1], config={'extension_directory': sys.argv[2]})"
_INSTALL = f"{_CONNECT}; c.execute('INSTALL tpch; LOAD tpch')"
_MAKE = f"""\
{_CONNECT}
c.execute("LOAD tpch; CALL dbgen(sf=" + sys.argv[3] + ")")
"""
_RUN = f"""\
{_CONNECT}
c.execute("LOAD tpch; SET threads=2; SET memory_limit='" + sys.argv[4] + "'")
c.execute("SET temp_directory='" + sys.argv[3] + "'")
for _ in range(int(sys.argv[5])):
    for number in range(1, int(sys.argv[6]) + 1):
        c.execute("PRAGMA tpch(" + str(number) + ")").fetchall()
"""


class DuckdbTpch(ValidationClient[EmbeddedLibrary]):
    """``scale`` is TPC-H's; ``repeat`` rounds of all queries make one lap."""

    family = "duckdb-tpch"
    laps = True
    engine = "duckdb"
    program = "python3"
    package = "pip install duckdb"
    defaults: ClassVar = {"scale": 0.5, "repeat": 1, "memory": "100MB"}

    def missing(self) -> str | None:
        """The library, or its extension, which is downloaded from its publisher if absent."""
        if importlib.util.find_spec("duckdb") is None:
            return f"duckdb is not installed ({self.package})"
        return _install()

    def prepare(self, database: EmbeddedLibrary) -> None:
        """Make the tables."""
        run_client_program("duckdb", _python(_MAKE, database, self.text("scale")), database)

    def run(self, database: EmbeddedLibrary, seconds: float) -> ClientLoad:
        """Time all queries, one after the other."""
        del seconds
        log = database.outer / "duckdb.out"
        temp = database.directory(Role.TEMP) / "duckdb_temp"
        options = [self.text("memory"), self.text("repeat"), str(_QUERIES)]
        process = database.launch(_python(_RUN, database, temp, *options), log)
        began_s = time.monotonic()
        wait_for_client_program("duckdb", process, log)
        return ClientLoad(time.monotonic() - began_s)


@cache
def _install() -> str | None:
    """Fetch DuckDB's extension from its publisher; DuckDB checks its signature when it loads it."""

    def install(home: PrivateDirectory) -> FinishedProgram:
        arguments: list[str | Path] = [":memory:", home.own / "extensions"]
        code = python_process.unprivileged_python("duckdb", _INSTALL, arguments, imports=["duckdb"])
        return programs.run("duckdb", code, home=home, variables=network_variables())

    failure = fetch_program(_extensions(), "extensions", install)
    return failure and "DuckDB's extension tpch is not installed, and cannot be fetched here"


def _extensions() -> Path:
    return caller_cache_directory(f"duckdb-{metadata.version('duckdb')}")


def _python(code: str, database: EmbeddedLibrary, *arguments: str | Path) -> ProcessCommand:
    file = database.directory(Role.DATA) / "tpch.duckdb"
    known = [file, database.reachable(_extensions()), *arguments]
    return python_process.unprivileged_python("duckdb", code, known, imports=["duckdb"])
