"""The sqlite3 shell, which reads statements from a pipe until it is closed."""

from __future__ import annotations

import fcntl
import math
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tierwise.host import programs
from tierwise.host.users import give_ownership
from tierwise.lab.validation.clients.validation_client import (
    ClientLoad,
    ValidationClient,
    wait_for_client_program,
)
from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_PIPE_BYTES = 4096
"""Minimum pipe size: statements left in the pipe run after the time is over."""
_FROM_PIPE = 'kill -STOP $$; pipe=$1; shift; exec "$@" <"$pipe"'
_KEEP_LOG = ("-cmd", ".filectrl persist_wal 1")
"""The write-ahead log keeps its length when the last connection closes, as under a program that stays
connected: a log that grows costs the file system's journal too."""
_LOG_FULL_AFTER = 1500
"""Transactions after which the log has the length at which SQLite begins it anew: 1,000 pages."""
_MAKE = """\
PRAGMA journal_mode={journal};
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, filler TEXT NOT NULL);
CREATE TABLE history (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, change INTEGER NOT NULL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO account SELECT i, 0, printf('%080d', i) FROM n;
"""


class SqliteShell(ValidationClient[EmbeddedLibrary]):
    """``journal`` is ``wal`` or ``delete``, ``synchronous`` ``full`` or ``normal``.

    ``scale`` counts accounts, in thousands.
    """

    family = "sqlite-shell"
    engine = "sqlite"
    program = "sqlite3"
    package = "Debian: sqlite3"
    defaults: ClassVar = {"journal": "wal", "synchronous": "full", "scale": 500}
    of_data: ClassVar = ("journal", "scale")  # the file stores the journal mode
    choices: ClassVar = {"journal": ["wal", "delete"], "synchronous": ["full", "normal"]}

    def prepare(self, database: EmbeddedLibrary) -> None:
        """Make and fill two tables."""
        rows = 1000 * self.number("scale")
        made = _MAKE.format(journal=self.text("journal"), rows=rows)
        script = database.input_file("make.sql", made)
        self._shell(database, [f".read {script}"])

    def warm_up(self, database: EmbeddedLibrary, seconds: float) -> None:  # noqa: ARG002  (the base class's)
        """Fill the write-ahead log once."""
        with _unrecorded(database):
            self._feed(database, math.inf, _LOG_FULL_AFTER)

    def run(self, database: EmbeddedLibrary, seconds: float) -> ClientLoad:
        """Feed transactions for a time and count those in the database."""
        before = self._count(database)
        elapsed_s = self._feed(database, seconds)
        done = self._count(database) - before
        if not done:
            raise TierwiseError("sqlite3 finished no transaction", "give it more time")
        return ClientLoad(elapsed_s, done)

    def _feed(self, database: EmbeddedLibrary, seconds: float, most: float = math.inf) -> float:
        """Run transactions for a time, or a number of them; give the time that it took."""
        pipe, log = database.outer / "pipe", database.outer / "sqlite3.out"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, mode=0o600)
        give_ownership(pipe, database.user)
        process = database.launch(
            [pipe, programs.program_path(self.program), "-bail", *_KEEP_LOG, _file(database)], log, _FROM_PIPE
        )
        feeder = _StatementFeeder(pipe, self, seconds, most)
        try:
            began_s = time.monotonic()
            feeder.start()
            wait_for_client_program("sqlite3", process, log)
            return time.monotonic() - began_s
        finally:
            feeder.join()

    def _count(self, database: EmbeddedLibrary) -> int:
        return int(self._shell(database, ["SELECT count(*) FROM history;"]).split()[-1])

    def _shell(self, database: EmbeddedLibrary, commands: list[str]) -> str:
        log = database.outer / "shell.out"
        argv: list[str | Path] = [programs.program_path(self.program), *_KEEP_LOG, _file(database), *commands]
        with _unrecorded(database):
            return wait_for_client_program("sqlite3", database.launch(argv, log), log)


@contextmanager
def _unrecorded(database: EmbeddedLibrary) -> Iterator[None]:
    """Nobody is told of programs that are started meanwhile."""
    on_started, database.on_started = database.on_started, lambda _: None
    try:
        yield
    finally:
        database.on_started = on_started


class _StatementFeeder(threading.Thread):
    """Writes statements to the shell's pipe; the pipe's size limits how far it runs ahead."""

    def __init__(self, pipe: Path, client: SqliteShell, seconds: float, most: float) -> None:
        super().__init__(name="feeder", daemon=True)
        self._synchronous, self._rows = client.text("synchronous"), 1000 * client.number("scale")
        self._pipe, self._seconds, self._most = pipe, seconds, most
        self._random = random.Random(client.seed)

    def run(self) -> None:
        """Feed statements until the time is over, enough were fed, or the shell has ended."""
        until_s, fed = time.monotonic() + self._seconds, 0
        try:
            with self._pipe.open("w", buffering=1, encoding="ascii") as pipe:
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                pipe.write(f"PRAGMA synchronous={self._synchronous};\n")
                while time.monotonic() < until_s and fed < self._most:
                    pipe.write(self._transaction())
                    fed += 1
        except BrokenPipeError:
            return

    def _transaction(self) -> str:
        account = self._random.randint(1, self._rows)
        return (
            f"BEGIN IMMEDIATE;UPDATE account SET balance=balance+1 WHERE id={account};"
            f"INSERT INTO history(account,change) VALUES({account},1);COMMIT;\n"
        )


def _file(database: EmbeddedLibrary) -> Path:
    return database.directory(Role.DATA) / "bench.db"
