"""sysbench's OLTP scripts, on PostgreSQL and on MariaDB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from tierwise.lab.engines.postgres.server import PORT
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    ValidationClient,
    latency_percentiles,
    run_client_program,
)
from tierwise.lab.validation.servers.case_database import CLIENT, DATABASE, CaseServer
from tierwise.lab.validation.servers.mariadb import DebianMariadb
from tierwise.lab.validation.servers.postgres import DebianPostgres
from tierwise.model.errors import TierwiseError

_SCRIPTS = Path("/usr/share/sysbench")
_TRANSACTIONS = re.compile(r"transactions:\s+(\d+)")
_TIME = re.compile(r"total time:\s+([\d.]+)s")
_BIN = re.compile(r"^\s*([\d.]+) \|\**\s*(\d+)$", re.MULTILINE)
_LOADS = "oltp_read_write"
"""All OLTP scripts create the same tables."""


class Sysbench(ValidationClient[CaseServer]):
    """``script`` is the name of one in /usr/share/sysbench; ``scale`` counts thousands of rows a table.

    ``rate``, if not 0, is that of arrivals a second.
    """

    family = "sysbench"
    program = "sysbench"
    package = "Debian: sysbench"
    servers = ("postgres", "mariadb")
    defaults: ClassVar = {"script": "oltp_read_write", "tables": 2, "scale": 200, "rate": 0}
    of_data: ClassVar = ("tables", "scale")

    def missing(self) -> str | None:
        """The program, or the script."""
        script = _SCRIPTS / f"{self.text('script')}.lua"
        return super().missing() or (None if script.exists() else f"sysbench has no script {script}")

    def prepare(self, database: CaseServer) -> None:
        """Make and fill the tables."""
        self._sysbench(database, _LOADS, ["--threads=2"], "prepare")

    def warm_up(self, database: CaseServer, seconds: float) -> None:
        """Run the measured work, unmeasured."""
        self._work(database, seconds, [])

    def run(self, database: CaseServer, seconds: float) -> ClientLoad:
        """Count transactions, with a histogram of their latencies."""
        text = self._work(database, seconds, ["--histogram=on"])
        done, elapsed = _TRANSACTIONS.search(text), _TIME.search(text)
        if done is None or elapsed is None:
            raise TierwiseError("sysbench told no rate", "use one of its OLTP scripts")
        histogram = {1000 * float(value): int(count) for value, count in _BIN.findall(text)}
        latency_us = {} if self.number("rate") else latency_percentiles(histogram)
        return ClientLoad(float(elapsed[1]), int(done[1]), latency_us)  # It counts the wait of an arrival.

    def _work(self, database: CaseServer, seconds: float, more: list[str]) -> str:
        options = [f"--threads={self.clients}", f"--time={max(1, round(seconds))}", *more]
        options.append(f"--rand-seed={self.seed}")
        options += [f"--rate={self.text('rate')}"] if self.number("rate") else []
        return self._sysbench(database, self.text("script"), options, "run")

    def _sysbench(self, database: CaseServer, script: str, options: list[str], action: str) -> str:
        sizes = [f"--tables={self.number('tables')}", f"--table-size={1000 * self.number('scale')}"]
        program: list[str | Path] = ["sysbench", _SCRIPTS / f"{script}.lua", *_connection(database)]
        return run_client_program("sysbench", [*program, *sizes, *options, action], database)


def _connection(database: CaseServer) -> list[str]:
    if isinstance(database, DebianMariadb):
        return [f"--mysql-socket={database.socket}", f"--mysql-user={CLIENT}", f"--mysql-db={DATABASE}"]
    assert isinstance(database, DebianPostgres)
    return [
        "--db-driver=pgsql",
        f"--pgsql-host={database.home}",
        f"--pgsql-port={PORT}",
        f"--pgsql-user={CLIENT}",
        f"--pgsql-db={DATABASE}",
    ]
