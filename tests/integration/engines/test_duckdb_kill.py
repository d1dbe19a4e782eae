"""What survives a kill of DuckDB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.duckdb_items import ITEM, opened
from support.paths import TESTS
from tierwise.engines.duckdb.adapter import DuckAdapter
from tierwise.engines.duckdb.client import DuckSession
from tierwise.model.roles import Role


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[DuckAdapter]:
    made = opened(tmp_path)
    made.execute(Role.DATA, ITEM)
    yield made
    made.close()


@pytest.fixture
def session(adapter: DuckAdapter) -> Iterator[DuckSession]:
    made = adapter.connect()
    yield made
    made.close()


def run(session: DuckSession, sql: str, *arguments: object, column: str | None = None) -> tuple[int, int]:
    session.prepare(sql, ["x"] * len(arguments))
    return session.execute(len(session._statements) - 1, arguments, column)


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from support.duckdb_items import INSERT, ITEM, opened
from tierwise.model.roles import Role
adapter = opened(pathlib.Path({str(tmp_path)!r}))
adapter.execute(Role.DATA, ITEM)
session = adapter.connect()
session.prepare(INSERT, ["id", "body"])
for key in range(100_000):
    session.begin()
    session.execute(0, (2 * key, "x"), None)
    session.execute(0, (2 * key + 1, "x"), None)
    session.commit()
    os.write(1, b"%d\\n" % key)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(100)]
        writer.kill()
        told += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    adapter = opened(tmp_path)
    session = adapter.connect()
    rows, total = run(session, "SELECT id FROM item", column="id")
    session.close()
    adapter.close()
    assert told[0] and rows >= 2 * len(told)
    assert rows % 2 == 0, "half a transaction"
    assert total == rows * (rows - 1) // 2
