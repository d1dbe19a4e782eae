"""Power cuts under an SQLite whose kinds of files are on file systems of their own.

Nothing orders the changes of one file system with those of another: what SQLite leaves to the order within
one, the VFS must flush. Without that the first cut brought back a journal that had been deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from test_disk import traces

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.host.disk.disk import CutReport, EmulatedDisk, Partition
from tierwise.model.errors import StatementError

pytestmark = pytest.mark.privileged

NAME = f"sqlite-cut-{os.getpid()}"
ROLES = ("data", "log", "doublewrite", "temp", "system")
CUTS = 3


@dataclass
class Database:
    """What a client tried to commit, and what it was told had been."""

    disk: EmulatedDisk
    pragmas: dict[str, str]
    acknowledged: int = 0
    cuts: list[CutReport] = field(default_factory=list)

    def open(self) -> _core.SqliteDatabase:
        places = {role: str(path) for role, path in self.disk.mounts.items()}
        pragmas = list({"cache_size": "20", "cache_spill": "1", **self.pragmas}.items())
        return _core.SqliteDatabase(json.dumps({"places": places, "pragmas": pragmas}))

    def commit_until_it_fails(self, database: _core.SqliteDatabase) -> None:
        with contextlib.suppress(StatementError):
            for number in range(self.acknowledged + 1, 1_000_000):
                database.query("BEGIN")
                for part in range(5):
                    body = f"{number} {part} " * 200
                    database.query(f"INSERT INTO done VALUES ({number}, '{body}')")
                database.query(f"UPDATE total SET commits = {number}")
                database.query("COMMIT")
                self.acknowledged = number

    def survive(self, seed: int) -> int:
        """Cut the power at a random moment and recover; gives how many acknowledged commits are gone."""
        with contextlib.closing(self.open()) as database:
            client = threading.Thread(target=self.commit_until_it_fails, args=(database,))
            client.start()
            time.sleep(random.Random(seed).uniform(0.1, 0.5))
            self.cuts.append(self.disk.cut(keep_random=True, seed=seed, remount=False))
            client.join()
        self.disk.set_timing(False)
        self.disk.remount()
        last = self.committed()
        lost, self.acknowledged = max(self.acknowledged - last, 0), last
        self.disk.set_timing(True)
        return lost

    def committed(self) -> int:
        """The last commit that is there; it and all before it must be there whole."""
        with contextlib.closing(self.open()) as database:
            assert rows(database, "PRAGMA integrity_check") == [["ok"]]
            last = int(rows(database, "SELECT commits FROM total")[0][0])
            assert rows(database, "SELECT count(*), count(DISTINCT number) FROM done") == [[5 * last, last]]
        return last


def rows(database: _core.SqliteDatabase, sql: str) -> Any:
    return json.loads(database.query(sql))


@contextlib.contextmanager
def on_a_disk(mount_dir: Path, pragmas: dict[str, str]) -> Iterator[Database]:
    parts = [Partition(role, 64 << 20, "ext4") for role in ROLES]
    profile = profiles.load("hdd-7k2-sata-2009")
    with EmulatedDisk.up(NAME, profile, parts, mount_dir) as disk:
        disk.set_timing(False)
        made = Database(disk, pragmas)
        with contextlib.closing(made.open()) as database:
            database.query("CREATE TABLE done (number INTEGER, body TEXT)")
            database.query("CREATE INDEX done_body ON done (body)")
            database.query("CREATE TABLE total (commits INTEGER)")
            database.query("INSERT INTO total VALUES (0)")
        disk.set_timing(True)
        yield made


@pytest.mark.parametrize("mode", ["wal", "delete", "persist"])
def test_no_acknowledged_commit_is_lost(open_path: Path, mode: str) -> None:
    with on_a_disk(open_path / "mount", {"journal_mode": mode, "synchronous": "full"}) as database:
        lost = [database.survive(seed) for seed in range(CUTS)]
    print(mode, database.acknowledged, [(cut.kept_sectors, cut.unflushed_sectors) for cut in database.cuts])
    assert lost == [0] * CUTS
    assert database.acknowledged > CUTS
    assert traces(NAME, open_path / "mount") == []
