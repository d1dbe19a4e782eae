"""Power cuts under RocksDB and DuckDB, whose roles are on file systems of their own."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import test_duckdb
import test_rocksdb
from test_disk import traces

from tierwise.device_models import profiles
from tierwise.host.disk.disk import CutReport, EmulatedDisk, Partition
from tierwise.model.roles import Role

pytestmark = pytest.mark.privileged

CUTS = 3
THREADS = 3
BODY = "x" * 500
WRITER = """
import os, pathlib, sys, threading
sys.path.insert(0, {tests!r})
from test_embedded_power_cut import BODY, CASES, THREADS
case = CASES[sys.argv[1]]
adapter = case.open(pathlib.Path(sys.argv[2]))

def commit_until_it_fails(thread):
    session = adapter.connect()
    session.prepare(case.insert, ["id", "body"])
    for number in range(int(sys.argv[3]) + thread, 10**9, THREADS):
        session.begin()
        session.execute(0, (2 * number, BODY), None)
        session.execute(0, (2 * number + 1, BODY), None)
        session.commit()
        os.write(1, b"%d\\n" % number)

for thread in range(THREADS):
    threading.Thread(target=commit_until_it_fails, args=(thread,)).start()
"""


@dataclass
class Case:
    """An engine's adapter, a table in it, and how it writes and reads."""

    open: Callable[[Path], Any]
    schema: str
    insert: str
    get: str
    find: str
    scan: str
    roles: tuple[Role, ...]


CASES = {
    "rocksdb": Case(
        lambda path: test_rocksdb.opened(path, {"write_buffer_size": "200000"}),
        "OBJECT item KEY id FIELDS (id integer, body text) INDEXES (body)",
        "INSERT item (id, body) VALUES (?, ?)",
        "GET item (id) VALUES (?)",
        "FIND item (body) VALUES (?)",
        "SCAN item",
        (Role.LOG, Role.DATA, Role.SYSTEM),
    ),
    "duckdb": Case(
        lambda path: test_duckdb.opened(path, {"checkpoint_threshold": "100KB"}),
        "CREATE TABLE item (id BIGINT, body VARCHAR)",
        "INSERT INTO item VALUES (?, ?)",
        "SELECT id FROM item WHERE id = ?",
        "SELECT id FROM item WHERE body = ?",
        "SELECT id FROM item",
        (Role.DATA, Role.TEMP, Role.SYSTEM),
    ),
}


def acknowledged_until_a_cut(
    name: str, disk: EmulatedDisk, path: Path, first: int, seed: int
) -> tuple[set[int], CutReport]:
    """Numbers of the transactions that a process was told were committed before its power was cut."""
    script = WRITER.format(tests=str(Path(__file__).parent))
    argv = [sys.executable, "-c", script, name, str(path), str(first)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline()]
        time.sleep(random.Random(seed).uniform(0.1, 0.6))
        report = disk.cut(keep_random=True, seed=seed, remount=False)
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
    return {int(line) for line in told}, report


def present(case: Case, path: Path, below: int) -> set[int]:
    """Numbers of the transactions that are there; each must be there whole, and in the index."""
    with contextlib.closing(case.open(path)) as adapter, contextlib.closing(adapter.connect()) as session:
        for statement in (case.get, case.find, case.scan):
            session.prepare(statement, ["x"] * statement.count("?"))
        halves = [session.execute(0, (half,), None)[0] for half in range(2 * below)]
        assert halves[::2] == halves[1::2], "half a transaction"
        assert sum(halves) == session.execute(1, (BODY,), None)[0] == session.execute(2, (), None)[0]
    return {number for number in range(below) if halves[2 * number]}


@pytest.mark.parametrize("name", CASES)
def test_no_acknowledged_commit_is_lost(open_path: Path, name: str) -> None:
    case, told, path = CASES[name], set[int](), open_path / "mount"
    parts = [Partition(role, 64 << 20, "ext4") for role in case.roles]
    disk_name = f"{name}-cut-{os.getpid()}"
    with EmulatedDisk.up(disk_name, profiles.load("hdd-7k2-sata-2009"), parts, path) as disk:
        disk.set_timing(False)
        with contextlib.closing(case.open(path)) as adapter:
            adapter.execute(Role.DATA, case.schema)
        unflushed = 0
        for seed in range(CUTS):
            disk.set_timing(True)
            new, report = acknowledged_until_a_cut(name, disk, path, max(told, default=-1) + 10, seed)
            unflushed += report.unflushed_sectors
            told |= new
            disk.set_timing(False)
            disk.remount()
            assert told <= present(case, path, max(told) + 10), seed
        shutil.rmtree(path / "home")
    assert len(told) > CUTS and unflushed > 0
    assert traces(disk_name, path) == []
