"""Roles of files that no name tells: by their first bytes, by the user, by the numbers of a log's files."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import duckdb
import pytest

from tierwise.capture import target
from tierwise.model.errors import TierwiseError


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/srv/l/b.000001", "archive"),
        ("/srv/binlog/mysql.000001", "archive"),
        ("/var/lib/mysql/db1-log.000007", "archive"),
        ("/var/lib/mysql/db1-log.index", "archive"),
        ("/var/lib/mysql/host-relay.1000000", "archive"),
        ("/var/lib/mysql/aria_log.00000001", "system"),
        ("/var/lib/mysql/gcache.page.000003", "system"),
        ("/var/lib/mysql/relay-log.info", "system"),
        ("/var/lib/mysql/mysql/innodb_index_stats.ibd", "system"),
        ("/var/lib/mysql/mysql/global_priv.MAD", "system"),
        ("/var/lib/mysql/unknown", None),
        ("/var/lib/mysql/ib_logfile0", "log"),
    ],
)
def test_files_of_mariadb_whatever_the_administrator_calls_them(path: str, role: str | None) -> None:
    assert target.load_rules("mariadb").role_of(path) == role


def test_a_database_of_sqlite_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    known, place = target.load_rules("sqlite"), tmp_path / "app.store"
    with sqlite3.connect(place) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE t (a)")
        log = tmp_path / "odd"
        log.write_bytes((tmp_path / "app.store-wal").read_bytes())
    assert known.role_of(str(place)) is None
    assert known.role_of_content(place) == "data"
    assert known.role_of_content(log) == "log"
    journal = tmp_path / "journal"
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(20))
    assert known.role_of_content(journal) == "doublewrite"


def test_a_database_of_duckdb_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    place = tmp_path / "warehouse.dat"
    with duckdb.connect(str(place)) as database:
        database.execute("CREATE TABLE t (a integer)")
    assert target.load_rules("duckdb").role_of_content(place) == "data"


def test_nothing_but_a_regular_file_is_looked_into(tmp_path: Path) -> None:
    known, pipe = target.load_rules("sqlite"), tmp_path / "pipe"
    os.mkfifo(pipe)
    short = tmp_path / "short"
    short.write_bytes(b"SQLite")
    for place in (pipe, short, tmp_path, tmp_path / "none", Path("/proc/self/status")):
        assert known.role_of_content(place) is None
    assert target.load_rules("postgres").role_of_content(short) is None, "no bytes are known"


def test_a_role_given_by_the_user_comes_first() -> None:
    known = target.rules_with_roles(target.load_rules("mariadb"), ["/srv/l/b.*=log", "/srv/fast/=temp"])
    assert known.role_of("/srv/l/b.000001") == "log"
    assert known.role_of("/srv/fast/shop/orders.ibd") == "temp"
    assert known.role_of("/srv/l/c.000001") == "archive"
    assert known.engine == "mariadb"


@pytest.mark.parametrize("given", ["/srv/l", "srv/l=log", "/srv/l=logs", "=log", "/srv/l="])
def test_a_role_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(TierwiseError, match=r"^--role: .*=archive"):
        target.rules_with_roles(target.load_rules("mariadb"), [given])
