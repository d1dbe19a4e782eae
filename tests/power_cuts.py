"""A PostgreSQL under load on an emulated disk whose power is cut, and the books of what it acknowledged."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tierwise.device_models.profiles import Profile
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host.disk.disk import CutReport, EmulatedDisk, Partition
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role

SIZE_BYTES = 1 << 30
CLIENTS = 4
SETTINGS = {
    "shared_buffers": "2MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    # Data pages go to the device all the time, so that more than the log is at risk.
    "bgwriter_delay": "10ms",
    "bgwriter_lru_maxpages": "1000",
    "bgwriter_flush_after": "64kB",
    "backend_flush_after": "64kB",
}
SCHEMA = [
    (
        Role.DATA,
        "CREATE TABLE done (client integer, number integer, body text, PRIMARY KEY (client, number))",
    ),
    (Role.DATA, "CREATE TABLE total (client integer PRIMARY KEY, commits integer)"),
    (Role.DATA, f"INSERT INTO total SELECT i, 0 FROM generate_series(0, {CLIENTS - 1}) i"),
]


class BrokenPromiseError(Exception):
    """What was found cannot have come from whole transactions: damage, which only a lying disk may do."""


@dataclass
class Books:
    """What clients tried to commit, and what the server told them was."""

    tried: set[tuple[int, int]] = field(default_factory=set)
    acknowledged: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class Cut:
    """One power cut and what was found after it. ``damage`` says why the database could not be used."""

    report: CutReport
    commits: int
    lost: int = 0
    damage: str | None = None


@dataclass
class Cluster:
    """A database on an emulated disk; ``number`` is that of the next commit."""

    disk: EmulatedDisk
    engine: PostgresEngine
    books: Books = field(default_factory=Books)
    number: int = 0

    def survive(self, seed: int, keep_random: bool = True) -> Cut:
        """Load, cut the power at a random moment, recover, and compare with the books."""
        dice = random.Random(seed)
        before = len(self.books.acknowledged)
        checkpoint_after_s = dice.uniform(0, 0.5) if seed % 3 == 0 else None
        with self._load(checkpoint_after_s):
            self._await_commits(before)
            time.sleep(dice.uniform(0.2, 0.7))
            report = self.disk.cut(keep_random=keep_random, seed=seed, remount=False)
        cut = Cut(report, len(self.books.acknowledged) - before)
        # The server ends before its disk is mounted again, or after it was mounted behind its back.
        ends_first = seed % 2 == 0
        if ends_first:
            self.engine.crash_stop()
        self.disk.set_timing(False)
        try:
            self.disk.remount()
            self.engine.crash_stop()
            self.engine.start()
            cut.lost = self._lost()
        except (TierwiseError, psycopg.Error, OSError, BrokenPromiseError) as error:
            cut.damage = str(error)
        self.disk.set_timing(True)
        return cut

    def _await_commits(self, before: int) -> None:
        """Until the load commits; not for long where an earlier cut has ruined the database."""
        deadline_s = time.monotonic() + 20
        while len(self.books.acknowledged) <= before and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def _lost(self) -> int:
        """Number of acknowledged commits that are not there; they are then struck from the books."""
        with psycopg.connect(self.engine.dsn()) as connection:
            rows = connection.execute("SELECT client, number, body FROM done").fetchall()
            totals = dict(connection.execute("SELECT client, commits FROM total").fetchall())
        found = {(client, number) for client, number, _ in rows}
        if not found <= self.books.tried:
            raise BrokenPromiseError(f"nobody tried to commit {found - self.books.tried}")
        if any(body != _body(client, number) for client, number, body in rows):
            raise BrokenPromiseError("a row has another body")
        if any(commits != sum(who == client for who, _ in found) for client, commits in totals.items()):
            raise BrokenPromiseError("a transaction is there by half")
        lost = self.books.acknowledged - found
        self.books = Books(tried=set(found), acknowledged=set(found))
        return len(lost)

    @contextlib.contextmanager
    def _load(self, checkpoint_after_s: float | None) -> Iterator[None]:
        """Clients that commit as fast as they can until the server fails; they have ended on leaving."""
        first, self.number = self.number, self.number + 100_000
        threads = [threading.Thread(target=self._client, args=(client, first)) for client in range(CLIENTS)]
        if checkpoint_after_s is not None:
            threads.append(threading.Thread(target=self._checkpoint, args=(checkpoint_after_s,)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            # Whoever waits for a commit that went to the dead disk is told when the server ends.
            stopper = threading.Timer(2, self.engine.crash_stop)
            stopper.start()
            for thread in threads:
                thread.join()
            stopper.cancel()
            stopper.join()

    def _client(self, client: int, first: int) -> None:
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.engine.dsn()) as connection:
            for number in range(first, first + 100_000):
                self.books.tried.add((client, number))
                connection.execute(
                    "INSERT INTO done VALUES (%s, %s, %s)", (client, number, _body(client, number))
                )
                connection.execute("UPDATE total SET commits = commits + 1 WHERE client = %s", (client,))
                connection.commit()
                self.books.acknowledged.add((client, number))

    def _checkpoint(self, after_s: float) -> None:
        time.sleep(after_s)
        with (
            contextlib.suppress(psycopg.Error),
            psycopg.connect(self.engine.dsn(), autocommit=True) as connection,
        ):
            connection.execute("CHECKPOINT")


def _body(client: int, number: int) -> str:
    return f"{client} {number} " * 150


@contextlib.contextmanager
def cluster(
    name: str, profile: Profile, mount_dir: Path, fs: str = "ext4", *, lies: bool = False
) -> Iterator[Cluster]:
    """A running database with its tables, all of it on one disk, which is at the model's pace."""
    parts = [Partition("data", SIZE_BYTES, fs)]
    with contextlib.ExitStack() as undo:
        engine = undo.enter_context(PostgresEngine("postgres", embedded(), SETTINGS, timeout_s=120))
        disk = undo.enter_context(EmulatedDisk.up(name, profile, parts, mount_dir, lies_about_flush=lies))
        undo.callback(engine.crash_stop)
        mount_dir.chmod(0o755)
        disk.set_timing(False)
        engine.init({Role.SYSTEM: disk.mounts["data"]})
        engine.start()
        engine.execute_schema(SCHEMA)
        disk.set_timing(True)
        yield Cluster(disk, engine)
