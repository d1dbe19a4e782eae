"""Jobs of PostgreSQL's own programs that run once: COPY, CREATE INDEX, VACUUM, pg_restore, pgbench -i."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tierwise.lab.engines.postgres.server import PORT
from tierwise.lab.validation.clients.base import Client, Load, command
from tierwise.lab.validation.servers.base import CLIENT, DATABASE
from tierwise.lab.validation.servers.postgres import PostgresServer
from tierwise.model.errors import TierwiseError

_ROWS = 100_000
"""Rows of the table for each unit of ``scale``; about 100 bytes each."""
_MAKE = (
    "CREATE TABLE rows (id bigint NOT NULL, bucket int NOT NULL, label text NOT NULL, amount numeric(12, 2));"
    "CREATE TABLE copied (LIKE rows)"
)
_FILL = (
    "INSERT INTO rows SELECT g, (g::bigint * 7919) % 1000, md5(g::text) || md5((g + 1)::text), "
    "(g % 100000) / 7.0 FROM generate_series(1, {rows}) g"
)
_INDEXES = ("id", "bucket, label", "label", "amount, id")


class PostgresJob(Client[PostgresServer]):
    """``job`` is one of those in :meth:`_once`; ``repeat`` of it make one lap."""

    family = "postgres-jobs"
    laps = True
    program = "psql"
    package = "Debian: postgresql-client-15"
    defaults: ClassVar = {"job": "copy", "scale": 10, "repeat": 1}

    @property
    def dataset(self) -> str:
        """Each job needs its own data."""
        return f"{self.family}-{self.text('job')}-{self.text('scale')}"

    def prepare(self, database: PostgresServer) -> None:
        """Fill a table; for a cleaning job, also create something to clean."""
        if self.text("job") == "initialise":
            return
        self._psql(database, [_MAKE, _FILL.format(rows=_ROWS * self.number("scale"))])
        if self.text("job") == "vacuum":
            self._psql(database, ["ALTER TABLE rows ADD PRIMARY KEY (id)", "CREATE INDEX ON rows (bucket)"])
            self._psql(database, ["UPDATE rows SET amount = amount + 1, bucket = bucket + 1"])

    def warm_up(self, database: PostgresServer, seconds: float) -> None:
        """Write the job's input to other storage than the one under test, and read the table once."""
        del seconds
        if self.text("job") == "initialise":
            return
        self._psql(database, ["SELECT count(*) FROM rows"])
        if self.text("job") == "copy":
            self._psql(database, [f"\\copy rows TO '{_input(database)}'"])
        elif self.text("job") == "restore":
            dump: list[str | Path] = ["-Fc", "-Z0", "-t", "rows", "-f", _input(database)]
            command("pg_dump", self._tool(database, "pg_dump", dump), database)

    def run(self, database: PostgresServer, seconds: float) -> Load:
        """Time the job, repeated ``repeat`` times."""
        del seconds
        began_s = time.monotonic()
        for _ in range(self.number("repeat")):
            self._once(database)
        return Load(time.monotonic() - began_s)

    def _once(self, database: PostgresServer) -> None:
        job = self.text("job")
        if job == "copy":
            self._psql(database, ["TRUNCATE copied", f"\\copy copied FROM '{_input(database)}'"])
        elif job == "create_index":
            made = enumerate(_INDEXES)
            self._psql(database, [f"CREATE INDEX made_{at} ON rows ({columns})" for at, columns in made])
            self._psql(database, [f"DROP INDEX made_{at}" for at in range(len(_INDEXES))])
        elif job == "vacuum":
            self._psql(database, ["VACUUM (FREEZE, ANALYZE) rows"])
        elif job == "restore":
            tool = self._tool(
                database, "pg_restore", ["--clean", "-d", DATABASE, _input(database)], named=False
            )
            command("pg_restore", tool, database)
        elif job == "initialise":
            more = ["-i", "-q", "-s", self.text("scale")]
            command("pgbench", self._tool(database, "pgbench", more), database)
        else:
            raise TierwiseError(
                f"there is no job {job!r}", "use copy, create_index, vacuum, restore or initialise"
            )

    def _psql(self, database: PostgresServer, statements: Sequence[str]) -> None:
        each = [part for statement in statements for part in ("-c", statement)]
        command(
            "psql",
            self._tool(database, "psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1", *each]),
            database,
        )

    def _tool(
        self, database: PostgresServer, program: str, more: Sequence[str | Path], *, named: bool = True
    ) -> list[str | Path]:
        base: list[str | Path] = [
            database.bin / program,
            "-h",
            database.home,
            "-p",
            str(PORT),
            "-U",
            CLIENT,
        ]
        return [*base, *more, *([DATABASE] if named else [])]


def _input(database: PostgresServer) -> Path:
    return database.home / "input"
