"""Counters of the engine and the addresses where they are, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.capture import sql_session
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.mysql import MysqlSession
from tierwise.capture.postgres import PostgresSession
from tierwise.capture.sql_session import Reading
from tierwise.capture.target import Target, load
from tierwise.model.errors import TierwiseError

SECRET = "planted-9f3a"


@pytest.mark.parametrize("engine", ["mariadb", "sqlite"])
def test_a_dsn_of_another_engine_is_refused(engine: str) -> None:
    target = Target(lambda: [], load(engine))
    with pytest.raises(TierwiseError, match=f"postgresql is given, and {engine} is recorded"):
        EngineCounters.connect(sql_session.parse("postgresql:///bench", "test"), target)


def test_windows_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 100, 500, 505])
    keys = ("commits", "rollbacks")
    monkeypatch.setattr(PostgresSession, "__init__", lambda *_: None)
    monkeypatch.setattr(PostgresSession, "close", lambda _: None)
    monkeypatch.setattr(PostgresSession, "read", lambda _: Reading(dict.fromkeys(keys, next(readings)), ""))
    counters = EngineCounters(sql_session.Dsn("postgresql", ""))
    for _ in range(2):
        counters.begin()
        counters.end()
    assert counters.counts == dict.fromkeys(keys, 105)
    assert counters.transactions == 210


def test_counters_that_were_reset_have_no_increase() -> None:
    before = Reading({"commits": 5}, "begun")
    assert Reading({"commits": 7, "log_bytes": 1}, "begun").since(before) == {"commits": 2, "log_bytes": 1}
    assert Reading({"commits": 7}, "begun again").since(before) is None
    assert Reading({"commits": 4}, "begun").since(before) is None


@pytest.mark.parametrize(
    ("counts", "transactions"),
    [
        ({"commits": 90, "rollbacks": 10, "data_statements": 900}, 100),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900}, 900),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900, "innodb_transactions": 870}, 870),
    ],
)
def test_transactions_of_mysql(counts: dict[str, int], transactions: int) -> None:
    assert MysqlSession.transactions(counts) == transactions


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("postgresql://me@db/bench", "postgresql"),
        ("postgres:///bench", "postgresql"),
        ("host=/run/postgresql dbname=bench", "postgresql"),
        ("mysql://me@db:3307/bench", "mysql"),
        ("mariadb://me@db/bench", "mysql"),
    ],
)
def test_a_dsn_tells_the_engine(text: str, kind: str) -> None:
    entry = sql_session.find(text, None)
    assert entry is not None
    assert entry.kind == kind
    assert "me" not in repr(entry)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@db/bench",
        f"postgresql://db/bench?password={SECRET}",
        f"postgresql://db/bench?sslpassword={SECRET}",
        f"host=db password={SECRET}",
        f"user='me'password={SECRET}",
        f"host=db sslpassword={SECRET}",
        f"mysql://me:{SECRET}@db/bench",
        SECRET,
    ],
)
def test_a_password_on_the_command_line_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError) as refused:
        sql_session.find(text, None)
    assert SECRET not in str(refused.value)


def test_no_part_of_a_password_becomes_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sql_session.VARIABLE, f"postgresql://me:half@{SECRET}@db/bench")
    with pytest.raises(TierwiseError, match="write that @ as %40") as refused:
        sql_session.find(None, None)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv(sql_session.VARIABLE, "postgresql://me:half%40other@db/bench?options=-c%20a=b@c@d")
    assert sql_session.find(None, None) is not None


def test_a_file_is_refused_that_others_may_read(tmp_path: Path) -> None:
    file = tmp_path / "dsn"
    file.write_text(f"mysql://me:{SECRET}@db/bench\n")
    file.chmod(0o640)
    with pytest.raises(TierwiseError, match="chmod 600"):
        sql_session.find(None, file)
    file.chmod(0o600)
    entry = sql_session.find(None, file)
    assert entry is not None
    assert entry.text.endswith("@db/bench")
    with pytest.raises(TierwiseError, match="cannot read"):
        sql_session.find(None, tmp_path / "none")


def test_the_environment_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sql_session.VARIABLE, "mysql://me@db")
    entry = sql_session.find(None, None)
    assert entry is not None
    assert entry.kind == "mysql"
    option = sql_session.find("postgresql:///bench", None)
    assert option is not None
    assert option.kind == "postgresql"
    monkeypatch.delenv(sql_session.VARIABLE)
    assert sql_session.find(None, None) is None
