"""Jobs of MariaDB's shell that run once: LOAD DATA, ALTER TABLE with an index, OPTIMIZE TABLE."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tierwise.lab.validation.clients.base import Client, Load, command
from tierwise.lab.validation.servers.base import CLIENT, DATABASE
from tierwise.lab.validation.servers.mariadb import MariadbServer
from tierwise.model.errors import TierwiseError

_ROWS = 100_000
"""Rows of the table for each unit of ``scale``; about 100 bytes each."""
_MAKE = (
    "CREATE TABLE big (id bigint PRIMARY KEY, bucket int, label varchar(64), amount double)",
    "CREATE TABLE copied LIKE big",
)
_FILL = (
    "INSERT INTO big SELECT seq, (seq * 7919) % 1000, CONCAT(MD5(seq), MD5(seq + 1)), (seq % 100000) / 7 "
    "FROM seq_1_to_{rows}"
)
_INDEXES = ("bucket, label", "label", "amount, id")


class MariadbJob(Client[MariadbServer]):
    """``job`` is ``load_data``, ``create_index`` or ``optimize``; ``repeat`` of it make one lap."""

    family = "mariadb-jobs"
    laps = True
    program = "mariadb"
    package = "Debian: mariadb-client-core"
    defaults: ClassVar = {"job": "load_data", "scale": 5, "repeat": 1}

    def prepare(self, database: MariadbServer) -> None:
        """Fill a table."""
        self._shell(database, [*_MAKE, _FILL.format(rows=_ROWS * self.number("scale"))])

    def warm_up(self, database: MariadbServer, seconds: float) -> None:
        """Write the job's input to other storage than the one under test, and read the table once."""
        del seconds
        self._shell(database, ["SELECT COUNT(label) FROM big"])
        if self.text("job") == "load_data":
            _input(database).unlink(missing_ok=True)
            self._shell(database, [f"SELECT * INTO OUTFILE '{_input(database)}' FROM big"])

    def run(self, database: MariadbServer, seconds: float) -> Load:
        """Time the job, repeated ``repeat`` times."""
        del seconds
        jobs = {
            "load_data": ["TRUNCATE copied", f"LOAD DATA INFILE '{_input(database)}' INTO TABLE copied"],
            "create_index": [
                *(f"ALTER TABLE big ADD INDEX made_{at} ({columns})" for at, columns in enumerate(_INDEXES)),
                *(f"ALTER TABLE big DROP INDEX made_{at}" for at in range(len(_INDEXES))),
            ],
            "optimize": ["OPTIMIZE TABLE big"],
        }
        if self.text("job") not in jobs:
            raise TierwiseError(f"there is no job {self.text('job')!r}", f"use {', '.join(jobs)}")
        began_s = time.monotonic()
        for _ in range(self.number("repeat")):
            self._shell(database, jobs[self.text("job")])
        return Load(time.monotonic() - began_s)

    @staticmethod
    def _shell(database: MariadbServer, statements: Sequence[str]) -> None:
        login = ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={CLIENT}", DATABASE]
        command("mariadb", [*login, "-e", "; ".join(statements)], database)


def _input(database: MariadbServer) -> Path:
    return database.home / "input"
