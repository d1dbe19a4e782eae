"""Jobs of the servers' own programs that run once: loading, indexing, cleaning, restoring."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    DatabaseT,
    ValidationClient,
    run_client_program,
)
from tierwise.lab.validation.servers.case_database import CLIENT, DATABASE
from tierwise.lab.validation.servers.mariadb import DebianMariadb
from tierwise.lab.validation.servers.postgres import DebianPostgres

_ROWS = 100_000
"""Rows of the table for each unit of ``scale``; about 100 bytes each."""


class ServerJob(ValidationClient[DatabaseT]):
    """``repeat`` of the job make one lap."""

    laps = True

    def run(self, database: DatabaseT, seconds: float) -> ClientLoad:
        """Time the job, repeated ``repeat`` times."""
        del seconds
        began_s = time.monotonic()
        for _ in range(self.number("repeat")):
            self._once(database, self.text("job"))
        return ClientLoad(time.monotonic() - began_s)

    @abstractmethod
    def _once(self, database: DatabaseT, job: str) -> None: ...


class PostgresJob(ServerJob[DebianPostgres]):
    """COPY, CREATE INDEX, VACUUM, pg_restore or pgbench -i."""

    family = "postgres-jobs"
    program = "psql"
    package = "Debian: postgresql-client-15"
    servers = ("postgres",)
    defaults: ClassVar = {"job": "copy", "scale": 10, "repeat": 1}
    of_data: ClassVar = ("job", "scale")
    choices: ClassVar = {"job": ["copy", "create_index", "vacuum", "restore", "initialise"]}
    _MAKE = (
        "CREATE TABLE rows (id bigint NOT NULL, bucket int NOT NULL, label text NOT NULL, "
        "amount numeric(12, 2));CREATE TABLE copied (LIKE rows)"
    )
    _FILL = (
        "INSERT INTO rows SELECT g, (g::bigint * 7919) % 1000, md5(g::text) || md5((g + 1)::text), "
        "(g % 100000) / 7.0 FROM generate_series(1, {rows}) g"
    )
    _INDEXES = ("id", "bucket, label", "label", "amount, id")

    def prepare(self, database: DebianPostgres) -> None:
        """Fill a table; for a cleaning job, also create something to clean."""
        if self.text("job") == "initialise":
            return
        self._psql(database, [self._MAKE, self._FILL.format(rows=_ROWS * self.number("scale"))])
        if self.text("job") == "vacuum":
            self._psql(database, ["ALTER TABLE rows ADD PRIMARY KEY (id)", "CREATE INDEX ON rows (bucket)"])
            self._psql(database, ["UPDATE rows SET amount = amount + 1, bucket = bucket + 1"])

    def warm_up(self, database: DebianPostgres, seconds: float) -> None:
        """Write the job's input to other storage than the one under test, and read the table once."""
        del seconds
        if self.text("job") == "initialise":
            return
        self._psql(database, ["SELECT count(*) FROM rows"])
        if self.text("job") == "copy":
            self._psql(database, [f"\\copy rows TO '{_input(database)}'"])
        elif self.text("job") == "restore":
            dump = [*database.tool("pg_dump"), "-Fc", "-Z0", "-t", "rows", "-f", _input(database), DATABASE]
            run_client_program("pg_dump", dump, database)

    def _once(self, database: DebianPostgres, job: str) -> None:
        if job == "copy":
            self._psql(database, ["TRUNCATE copied", f"\\copy copied FROM '{_input(database)}'"])
        elif job == "create_index":
            made = enumerate(self._INDEXES)
            self._psql(database, [f"CREATE INDEX made_{at} ON rows ({columns})" for at, columns in made])
            self._psql(database, [f"DROP INDEX made_{at}" for at in range(len(self._INDEXES))])
        elif job == "vacuum":
            self._psql(database, ["VACUUM (FREEZE, ANALYZE) rows"])
        elif job == "restore":
            restore = [*database.tool("pg_restore"), "--clean", "-d", DATABASE, _input(database)]
            run_client_program("pg_restore", restore, database)
        else:
            initialise = [*database.tool("pgbench"), "-i", "-q", "-s", self.text("scale"), DATABASE]
            run_client_program("pgbench", initialise, database)

    @staticmethod
    def _psql(database: DebianPostgres, statements: Sequence[str]) -> None:
        each = [part for statement in statements for part in ("-c", statement)]
        psql = [*database.tool("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *each, DATABASE]
        run_client_program("psql", psql, database)


class MariadbJob(ServerJob[DebianMariadb]):
    """LOAD DATA, ALTER TABLE with an index, or OPTIMIZE TABLE, in MariaDB's shell."""

    family = "mariadb-jobs"
    program = "mariadb"
    package = "Debian: mariadb-client-core"
    servers = ("mariadb",)
    defaults: ClassVar = {"job": "load_data", "scale": 5, "repeat": 1}
    choices: ClassVar = {"job": ["load_data", "create_index", "optimize"]}
    _MAKE = (
        "CREATE TABLE big (id bigint PRIMARY KEY, bucket int, label varchar(64), amount double)",
        "CREATE TABLE copied LIKE big",
    )
    _FILL = (
        "INSERT INTO big SELECT seq, (seq * 7919) % 1000, CONCAT(MD5(seq), MD5(seq + 1)), "
        "(seq % 100000) / 7 FROM seq_1_to_{rows}"
    )
    _INDEXES = ("bucket, label", "label", "amount, id")

    def prepare(self, database: DebianMariadb) -> None:
        """Fill a table."""
        self._shell(database, [*self._MAKE, self._FILL.format(rows=_ROWS * self.number("scale"))])

    def warm_up(self, database: DebianMariadb, seconds: float) -> None:
        """Write the job's input to other storage than the one under test, and read the table once."""
        del seconds
        self._shell(database, ["SELECT COUNT(label) FROM big"])
        if self.text("job") == "load_data":
            _input(database).unlink(missing_ok=True)
            self._shell(database, [f"SELECT * INTO OUTFILE '{_input(database)}' FROM big"])

    def _once(self, database: DebianMariadb, job: str) -> None:
        if job == "load_data":
            load = f"LOAD DATA INFILE '{_input(database)}' INTO TABLE copied"
            self._shell(database, ["TRUNCATE copied", load])
        elif job == "create_index":
            made = [f"ADD INDEX made_{at} ({columns})" for at, columns in enumerate(self._INDEXES)]
            made += [f"DROP INDEX made_{at}" for at in range(len(self._INDEXES))]
            self._shell(database, [f"ALTER TABLE big {change}" for change in made])
        else:
            self._shell(database, ["OPTIMIZE TABLE big"])

    @staticmethod
    def _shell(database: DebianMariadb, statements: Sequence[str]) -> None:
        login = ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={CLIENT}", DATABASE]
        run_client_program("mariadb", [*login, "-e", "; ".join(statements)], database)


def _input(database: DebianPostgres | DebianMariadb) -> Path:
    return database.home / "input"
