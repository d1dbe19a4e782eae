"""What is particular to the MariaDB engine; what all engines share is in test_engine_contract.py."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import Load, files_under, open_directory, places_in, until
from support.engine_sessions import client_of, root_of
from tierwise.lab import engines
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.mariadb.binaries import MariadbBinaries, installed_mariadb
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

CASE = CASES[0]
SPILL = "SELECT count(*) FROM (SELECT DISTINCT body, id FROM item ORDER BY body LIMIT 1000000) AS sorted"


@pytest.fixture(scope="module")
def engine() -> Iterator[MariadbEngine]:
    if reason := CASE.missing():
        pytest.skip(reason)
    with open_directory() as directory, MariadbEngine("mariadb", installed_mariadb()) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        CASE.fill(made)
        yield made


def session(engine: MariadbEngine) -> pymysql.Connection[pymysql.cursors.Cursor]:
    """As one of the load's."""
    return client_of(engine, autocommit=True)


def test_each_role_holds_the_files_that_are_its_own(engine: MariadbEngine) -> None:
    names = {role: {file.name for file in files_under(path)} for role, path in engine.directories.items()}
    assert names[Role.LOG] == {"ib_logfile0"}
    assert names[Role.UNDO] == {"undo001", "undo002", "undo003"}
    assert names[Role.DATA] == {"item.ibd"}
    assert names[Role.ARCHIVE] >= {"binlog.000001", "binlog.index"}
    assert "ibtmp1" in names[Role.TEMP]
    assert "ibdata1" in names[Role.SYSTEM]


def test_it_is_durable_unless_told_otherwise(engine: MariadbEngine) -> None:
    settings = engine.settings()
    wanted = {
        "innodb_flush_log_at_trx_commit": "1",
        "innodb_flush_method": "O_DIRECT",
        "innodb_doublewrite": "ON",
        "sync_binlog": "1",
    }
    assert {name: settings[name] for name in wanted} == wanted
    assert settings["innodb_buffer_pool_load_at_startup"] == "OFF"
    assert settings["performance_schema"] == "OFF"


def test_a_table_that_spills_does_so_in_the_temp_place(engine: MariadbEngine) -> None:
    """Files without a name are found among the server's open ones."""
    with session(engine) as connection, connection.cursor() as cursor:
        cursor.execute("SET tmp_memory_table_size = 16384, sort_buffer_size = 262144")
        working = threading.Thread(target=cursor.execute, args=(SPILL,))
        working.start()
        seen = set[Path]()
        while working.is_alive():
            seen |= temporary_files(engine)
        working.join()
    assert seen
    assert all(engine.directories[Role.TEMP] in path.parents for path in seen), seen


def temporary_files(engine: MariadbEngine) -> set[Path]:
    table_set = set()
    for link in Path(f"/proc/{engine.server_pid}/fd").iterdir():
        try:
            path = link.readlink()
        except OSError:
            continue
        if path.name != "ibtmp1" and engine.role_of(path) is Role.TEMP:
            table_set.add(path)
    return table_set


def test_a_table_keeps_its_place_when_it_is_rebuilt(engine: MariadbEngine) -> None:
    engine.execute_schema(
        [
            (Role.DATA, "CREATE TABLE part (id INTEGER NOT NULL, name VARCHAR(20) DEFAULT ')')"),
            (Role.INDEX, "ALTER TABLE part ADD PRIMARY KEY (id)"),
            (Role.DATA, "CREATE TABLE copied AS SELECT * FROM part"),
            (Role.SYSTEM, "CREATE TABLE small (id INTEGER)"),
        ]
    )
    for table, role in {"part": Role.DATA, "copied": Role.DATA, "small": Role.SYSTEM}.items():
        (file,) = [path for path in files_under(engine.directories[role]) if path.name == f"{table}.ibd"]
        assert engine.role_of(file) is role
    with session(engine) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE astray (id INTEGER)")
    (file,) = [path for path in files_under(engine.directories[Role.SYSTEM]) if path.name == "astray.ibd"]
    assert engine.role_of(file) is Role.DATA, "its role is not that of the place where it lies"


def test_commits_and_pages_written_twice_are_counted(engine: MariadbEngine) -> None:
    before = engine.counters()
    with Load(CASE, engine, clients=3, first=1_000_000) as load:
        load.lap("insert", transactions=50)
    engine.checkpoint()
    done = engine.counters().since(before)
    assert 50 <= (done.commits or 0) < 60
    assert done.pages_written and done.page_bytes == 16384
    assert 0 < (done.doublewrite_bytes or 0) <= done.pages_written * done.page_bytes


def test_a_session_behind_another_waits_for_a_lock(engine: MariadbEngine) -> None:
    with session(engine) as holder, holder.cursor() as first:
        first.execute("BEGIN")
        first.execute("UPDATE item SET body = 'x' WHERE id = 1")
        with session(engine) as behind, behind.cursor() as second:
            waiting = threading.Thread(
                target=second.execute, args=("UPDATE item SET body = 'y' WHERE id = 1",)
            )
            waiting.start()
            until(lambda: lock_waits(engine) == 1)
            sampler = engine.sampler()
            sampler.start()
            time.sleep(0.5)
            profile = sampler.stop()
            holder.rollback()
            waiting.join()
    assert profile is not None
    assert profile.shares["client"].share == pytest.approx(0.5, abs=0.05)
    assert profile.shares["lock"].share == pytest.approx(0.5, abs=0.05)


def lock_waits(engine: MariadbEngine) -> int:
    with root_of(engine) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM information_schema.innodb_lock_waits")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_called_by_root_the_server_is_another_user(engine: MariadbEngine) -> None:
    assert Path(f"/proc/{engine.server_pid}").stat().st_uid != 0
    assert engine.directories[Role.DATA].stat().st_uid == Path(f"/proc/{engine.server_pid}").stat().st_uid


def test_too_little_memory_is_refused(engine: MariadbEngine) -> None:
    small = engines.create_engine("mariadb")
    small.limits = ResourceLimits(memory_bytes=64 << 20)
    with open_directory() as directory, pytest.raises(TierwiseError, match="64M of memory: give it 96M"):
        small.init({Role.SYSTEM: directory})


@pytest.mark.parametrize("name", ["datadir", "log-bin", "innodb_undo_directory", "tmpdir"])
def test_settings_that_the_placement_needs_are_refused(name: str, engine: MariadbEngine) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name} is not among those"):
        engines.create_engine("mariadb", {name: "1"})


@pytest.mark.parametrize(
    ("setting", "value"),
    [("innodb_flush_method", "sometimes"), ("sync_binlog", "-1"), ("innodb_flush_log_at_trx_commit", "9")],
)
def test_a_value_that_the_server_would_change_is_refused(
    engine: MariadbEngine, setting: str, value: str
) -> None:
    with open_directory() as directory, pytest.raises(TierwiseError, match=f"setting {setting}: "):
        engines.create_engine("mariadb", {setting: value}).init({Role.SYSTEM: directory})


def test_programs_that_are_not_there_or_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TierwiseError, match="is not a program"):
        _ = MariadbBinaries(tmp_path / "mariadbd", tmp_path).version
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("tierwise.host.programs.SYSTEM_PATH", "")
    with pytest.raises(TierwiseError, match=r"not installed: mariadbd, .*: apt-get install mariadb-server"):
        installed_mariadb()
