"""DuckDB: its sessions, caps, conflicts and counters, and files that it loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.duckdb_items import INSERT, ITEM, opened
from support.paths import TESTS
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.duckdb.adapter import DuckDbAdapter, DuckDbSession
from tierwise.lab.engines.duckdb.engine import DuckDbEngine
from tierwise.model.errors import StatementError, TierwiseError
from tierwise.model.placement import Role

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range < 0"


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[DuckDbAdapter]:
    made = opened(tmp_path)
    made.execute(ITEM)
    yield made
    made.close()


@pytest.fixture
def session(adapter: DuckDbAdapter) -> Iterator[DuckDbSession]:
    made = adapter.connect()
    yield made
    made.close()


def run(session: DuckDbSession, sql: str, *arguments: object, column: str | None = None) -> tuple[int, int]:
    session.prepare(sql, ["x"] * len(arguments))
    return session.execute(len(session._statements) - 1, arguments, column)


def test_a_session_gives_rows_and_sums(session: DuckDbSession) -> None:
    rows = [(f"b{key}", key, key / 4) for key in range(25_000)]
    assert session.append("item", ["body", "ID", "weight"], rows) == 25_000
    assert run(session, "SELECT id, body FROM item WHERE id < ?", 20_000, column="ID") == (
        20_000,
        199_990_000,
    )
    assert run(session, "SELECT sum(id) AS s FROM item", column="s") == (1, 312_487_500)
    assert run(session, INSERT, 1, "more") == (1, 0)
    assert run(session, "UPDATE item SET body = 'c' WHERE id < ?", 10) == (11, 0)
    assert run(session, "DELETE FROM item WHERE id = ?", 1) == (2, 0)
    assert session.query_number("SELECT max(id) FROM item") == 24_999
    assert session.query_number("SELECT max(id) FROM item WHERE id < 0") is None


def test_a_statement_that_returns_what_it_changed_counts_rows(session: DuckDbSession) -> None:
    run(session, "INSERT INTO item (id) VALUES (40), (50)")
    assert run(session, "UPDATE item SET id = id + 1 RETURNING id") == (2, 0)
    assert run(session, "UPDATE item SET id = id + 1 RETURNING id", column="id") == (2, 42 + 52)
    assert run(session, "DELETE FROM item WHERE id = 42 RETURNING body") == (1, 0)
    assert run(session, "DELETE FROM item WHERE id = 42 RETURNING id") == (0, 0)


def test_a_transaction_is_kept_or_given_up_whole(adapter: DuckDbAdapter, session: DuckDbSession) -> None:
    other = adapter.connect()
    session.begin()
    run(session, INSERT, 1, "a")
    assert run(other, "SELECT id FROM item") == (0, 0)
    session.rollback()
    session.rollback()
    session.begin()
    run(session, INSERT, 2, "b")
    session.commit()
    assert run(other, "SELECT id FROM item", column="id") == (1, 2)
    other.close()


def test_a_conflict_may_be_tried_again(adapter: DuckDbAdapter, session: DuckDbSession) -> None:
    run(session, INSERT, 1, "a")
    other = adapter.connect()
    session.begin()
    other.begin()
    run(session, "UPDATE item SET body = 'b' WHERE id = 1")
    with pytest.raises(StatementError, match=r"(?i)conflict") as caught:
        run(other, "UPDATE item SET body = 'c' WHERE id = 1")
    assert caught.value.retry
    other.rollback()
    session.commit()
    assert run(other, "UPDATE item SET body = 'c' WHERE id = 1") == (1, 0)
    other.close()


def test_a_statement_is_stopped_at_its_cap(adapter: DuckDbAdapter, session: DuckDbSession) -> None:
    free = adapter.connect()
    session.set_cap(0.2)
    with pytest.raises(StatementError) as caught:
        run(session, ENDLESS)
    assert caught.value.capped and not caught.value.retry
    assert run(session, "SELECT 1") == (1, 0)
    session.set_cap(None)
    for client in (session, free):
        assert run(client, "SELECT current_setting('max_execution_time') AS cap", column="cap") == (1, 0)
    free.close()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1; SELECT 2", "not one statement"),
        ("SELECT ?", "not one statement with 0 parameters"),
    ],
)
def test_a_wrong_statement_is_one_line(session: DuckDbSession, sql: str, problem: str) -> None:
    with pytest.raises(StatementError, match=problem) as caught:
        run(session, sql)
    assert "\n" not in caught.value.message


def test_files_are_loaded(adapter: DuckDbAdapter, session: DuckDbSession, tmp_path: Path) -> None:
    home = tmp_path / "home"
    text, parquet = home / "a.tbl", home / "it's.parquet"
    text.write_text('1|a "quoted" word|0.5\n2|b,c|1.5\n')
    session.run(
        f"COPY (SELECT 3 AS id, 'd' AS body, 2.5 AS weight) TO '{str(parquet).replace(chr(39), chr(39) * 2)}'"
    )
    assert adapter.load_files(table="item", paths=[str(text), str(parquet)]) == 3
    assert run(session, "SELECT id FROM item WHERE body LIKE '%\"quoted\"%'", column="id") == (1, 1)
    assert run(session, "SELECT id FROM item", column="id") == (3, 6)


def test_limits_and_settings_are_sizes_of_the_engine(tmp_path: Path) -> None:
    adapter = opened(
        tmp_path, {"checkpoint_threshold": "1MiB"}, ResourceLimits(memory_bytes=1 << 30, parallelism=1)
    )
    shown = adapter.settings()
    adapter.close()
    assert shown["threads"] == "1"
    assert shown["memory_limit"] == "819.1 MiB"
    assert shown["checkpoint_threshold"] == "1.0 MiB"
    assert shown["temp_directory"] == str(tmp_path / "temp" / "spill")


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [("memory_limt", "1GB", "memory_limit"), ("memory_limit", "many", "choose a value")],
)
def test_a_bad_setting_is_named(tmp_path: Path, name: str, value: str, fix: str) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name}") as caught:
        opened(tmp_path, {name: value})
    assert fix in caught.value.fix


def test_files_are_told_by_name_also_those_that_spill(tmp_path: Path) -> None:
    engine = DuckDbEngine("duckdb")
    adapter = opened(tmp_path, limits=ResourceLimits(memory_bytes=100 << 20, parallelism=1))
    adapter.execute(
        "CREATE TABLE t AS SELECT random() AS r, repeat('x', 50) || range AS t FROM range(1000000)"
    )
    seen = set[Path]()
    cursor = adapter._connection.cursor()
    cursor.execute("SELECT t FROM t ORDER BY r")
    cursor.fetchmany(10)
    seen.update(path for path in tmp_path.rglob("*") if path.is_file())
    cursor.close()
    adapter.close()
    roles = {path: engine.role_of(path) for path in seen}
    assert all(role is not None and tmp_path / role in path.parents for path, role in roles.items()), roles
    assert set(roles.values()) == {Role.DATA, Role.TEMP}


def test_counters_tell_commits(adapter: DuckDbAdapter, session: DuckDbSession) -> None:
    before = adapter.counters()
    adapter.execute("CREATE TABLE t AS SELECT random() AS r FROM range(1000000)")
    adapter.checkpoint()
    session.begin()
    run(session, INSERT, 1, "a")
    session.commit()
    session.begin()
    session.rollback()
    done = adapter.counters().since(before)
    assert (done.commits, done.page_bytes) == (3, 262_144)


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from support.duckdb_items import INSERT, ITEM, opened
from tierwise.model.placement import Role
adapter = opened(pathlib.Path({str(tmp_path)!r}))
adapter.execute(ITEM)
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
        lines = [writer.stdout.readline() for _ in range(100)]
        writer.kill()
        lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    adapter = opened(tmp_path)
    session = adapter.connect()
    rows, total = run(session, "SELECT id FROM item", column="id")
    session.close()
    adapter.close()
    assert lines[0] and rows >= 2 * len(lines)
    assert rows % 2 == 0, "half a transaction"
    assert total == rows * (rows - 1) // 2
