"""The steps that an advice gives for embedded engines, typed into a shell: there, and the way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from rocksdict import DBPath, Options, Rdict

from tierwise.model.placement import Role
from tierwise.report.steps import Steps, guide

ROWS = 2000
DUCKDB_SHELL = f"""#!{sys.executable}
import sys, duckdb
file, dash_c, statement = sys.argv[1:]
assert dash_c == "-c"
with duckdb.connect(file) as connection:
    connection.execute(statement)
"""


@pytest.fixture
def new(tmp_path: Path) -> Path:
    folder = tmp_path / "a new device"
    folder.mkdir()
    return folder


def steps_of(engine: str, role: Role) -> Steps:
    (steps,) = guide(engine, {role: "ssd-nvme-dc"}).steps
    return steps


def typed(lines: str, database: Path, new: Path, programs: Path | None = None) -> None:
    path = os.pathsep.join(filter(None, [str(programs or ""), os.environ["PATH"]]))
    env = {**os.environ, "DB": str(database), "NEW": str(new), "PATH": path}
    done = subprocess.run(["sh", "-eu", "-c", lines], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sqlite_moves_and_returns(tmp_path: Path, new: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("no sqlite3: apt-get install sqlite3")
    database, steps = tmp_path / "my shop.db", steps_of("sqlite", Role.DATA)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a integer)")
        connection.executemany("INSERT INTO t VALUES (?)", [(row,) for row in range(ROWS)])
        connection.commit()
    typed(steps.there, database, new)
    assert not database.exists()
    with closing(sqlite3.connect(new / database.name)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
        connection.execute("INSERT INTO t VALUES (-1)")
        connection.commit()
    typed(steps.back, database, new)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*), min(a) FROM t").fetchone() == (ROWS + 1, -1)


def test_duckdb_moves_and_returns(tmp_path: Path, new: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "duckdb").write_text(DUCKDB_SHELL, "utf-8")
    (programs / "duckdb").chmod(0o755)
    database, steps = tmp_path / "my shop.duckdb", steps_of("duckdb", Role.DATA)
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT range AS a FROM range({ROWS})")
    typed(steps.there, database, new, programs)
    assert not database.exists()
    with duckdb.connect(str(new / database.name)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
        connection.execute("INSERT INTO t VALUES (-1)")
    typed(steps.back, database, new, programs)
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("SELECT count(*), min(a) FROM t").fetchone() == (ROWS + 1, -1)
        temp = steps_of("duckdb", Role.TEMP)
        connection.execute(temp.there.replace("$NEW", str(new)))
        setting = "SELECT current_setting('temp_directory')"
        assert connection.execute(setting).fetchone() == (str(new / "tmp"),)
        connection.execute(temp.back)
        assert connection.execute(setting).fetchone() != (str(new / "tmp"),)


def wal_dir(options: Options, new: Path) -> None:
    options.set_wal_dir(str(new / "wal"))


def db_paths(options: Options, new: Path) -> None:
    options.set_db_paths([DBPath(str(new / "sst"), 1 << 30)])


@pytest.mark.parametrize(
    ("role", "place", "moved"), [(Role.LOG, wal_dir, "wal/*.log"), (Role.DATA, db_paths, "sst/*.sst")]
)
def test_rocksdb_moves_and_returns(
    tmp_path: Path, new: Path, role: Role, place: Callable[[Options, Path], None], moved: str
) -> None:
    database, steps = tmp_path / "my shop", steps_of("rocksdb", role)
    write(database, Options(), range(ROWS))
    typed(steps.there, database, new)
    assert list(new.glob(moved))
    options = Options()
    place(options, new)
    write(database, options, range(ROWS, 2 * ROWS))
    typed(steps.back, database, new)
    assert not list(new.glob(moved))
    rows = Rdict(str(database), Options())
    assert [rows[row] for row in range(2 * ROWS)] == [f"row {row}" for row in range(2 * ROWS)]
    rows.close()


def write(database: Path, options: Options, numbers: range) -> None:
    """Half of the rows go to a table file, half stay in the log."""
    rows = Rdict(str(database), options)
    for place, number in enumerate(numbers):
        rows[number] = f"row {number}"
        if place == len(numbers) // 2:
            rows.flush()
    rows.flush_wal(sync=True)
    rows.close()


def test_a_whole_rocksdb_moves_and_returns(tmp_path: Path, new: Path) -> None:
    database, steps = tmp_path / "my shop", steps_of("rocksdb", Role.SYSTEM)
    write(database, Options(), range(ROWS))
    typed(steps.there, database, new)
    write(new / "db", Options(), range(ROWS, 2 * ROWS))
    typed(steps.back, database, new)
    rows = Rdict(str(database), Options())
    assert len(list(rows.keys())) == 2 * ROWS
    rows.close()
