"""DuckDB with the data and the 22 queries of its TPC-H extension."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

from tierwise.model.roles import Role
from tierwise.validation.clients.base import Client, Load, command, finished
from tierwise.validation.servers.library import Library

_QUERIES = 22
_EXTENSION = "import duckdb; duckdb.execute('INSTALL tpch; LOAD tpch')"
_MAKE = """\
import duckdb, sys
duckdb.connect(sys.argv[1]).execute("LOAD tpch; CALL dbgen(sf=" + sys.argv[2] + ")")
"""
_RUN = """\
import duckdb, sys
c = duckdb.connect(sys.argv[1])
c.execute("LOAD tpch; SET threads=2; SET memory_limit='" + sys.argv[3] + "'")
c.execute("SET temp_directory='" + sys.argv[2] + "'")
for _ in range(int(sys.argv[4])):
    for number in range(1, int(sys.argv[5]) + 1):
        c.execute("PRAGMA tpch(" + str(number) + ")").fetchall()
"""


class DuckdbTpch(Client[Library]):
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
        done = subprocess.run([sys.executable, "-c", _EXTENSION], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return None
        return "DuckDB's extension tpch is not installed, and cannot be fetched here"

    def prepare(self, database: Library) -> None:
        """Make the tables."""
        command(
            "duckdb",
            [sys.executable, "-c", _MAKE, _file(database), self.text("scale")],
            database.home,
            user=database.user,
        )

    def warm_up(self, database: Library, seconds: float) -> None:
        """Nothing: each run opens the database anew."""

    def run(self, database: Library, seconds: float) -> Load:
        """Time all queries, one after the other."""
        del seconds
        log = database.home / "duckdb.out"
        log.unlink(missing_ok=True)
        temp = database.directory(Role.TEMP) / "duckdb_temp"
        argv: list[str | Path] = [
            sys.executable,
            "-c",
            _RUN,
            _file(database),
            temp,
            self.text("memory"),
            self.text("repeat"),
        ]
        process = database.launch([*argv, str(_QUERIES)], log)
        began_s = time.monotonic()
        finished("duckdb", process, log)
        return Load(time.monotonic() - began_s)


def _file(database: Library) -> Path:
    return database.directory(Role.DATA) / "tpch.duckdb"
