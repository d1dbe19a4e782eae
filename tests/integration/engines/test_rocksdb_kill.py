"""What survives a kill of RocksDB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import TESTS
from support.rocksdb_pilots import PILOT, opened
from tierwise.engines.objects.client import ObjectClient
from tierwise.engines.objects.operations import Value
from tierwise.engines.rocksdb.adapter import RocksAdapter
from tierwise.model.roles import Role


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[RocksAdapter]:
    made = opened(tmp_path)
    made.execute(Role.DATA, PILOT)
    yield made
    made.close()


def run(client: ObjectClient, text: str, sum_column: str | None = None, **given: Value) -> tuple[int, int]:
    number = len(client._operations)
    client.prepare(text, list(given))
    return client.execute(number, tuple(given.values()), sum_column)


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from support.rocksdb_pilots import INSERT, PILOT, opened
from tierwise.model.roles import Role
adapter = opened(pathlib.Path({str(tmp_path)!r}))
adapter.execute(Role.DATA, PILOT)
client = adapter.connect()
client.prepare(INSERT, ["id", "name", "points"])
for key in range(100_000):
    client.begin()
    client.execute(0, (2 * key, "x", 1), None)
    client.execute(0, (2 * key + 1, "x", 1), None)
    client.commit()
    os.write(1, b"%d\\n" % key)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(300)]
        writer.kill()
        told += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    adapter = opened(tmp_path)
    rows, total = run(adapter.connect(), "SCAN pilot", "id")
    adapter.close()
    assert rows >= 2 * len(told)
    assert rows % 2 == 0, "half a transaction"
    assert total == rows * (rows - 1) // 2
