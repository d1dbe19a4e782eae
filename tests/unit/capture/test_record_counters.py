"""Counters of the engine and the addresses where they are, without a server."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from tierwise.capture import engine_counters, sql_session
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.mysql_session import MysqlSession
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.sql_session import CounterReading
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

SECRET = "planted-9f3a"


@pytest.mark.parametrize("engine", ["mariadb", "sqlite"])
def test_a_dsn_of_another_engine_is_refused(engine: str) -> None:
    target = RecordingTarget(lambda: [], load_rules(engine))
    with pytest.raises(TierwiseError, match=f"postgresql is given, and {engine} is recorded"):
        EngineCounters.connect(sql_session.parse_dsn("postgresql:///bench", "test"), target)


def test_windows_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 100, 500, 505])
    keys = ("commits", "rollbacks")
    monkeypatch.setattr(PostgresSession, "__init__", lambda *_: None)
    monkeypatch.setattr(PostgresSession, "close", lambda _: None)
    monkeypatch.setattr(
        PostgresSession, "read", lambda _: CounterReading(dict.fromkeys(keys, next(readings)), "")
    )
    counters = EngineCounters(sql_session.Dsn("postgresql", ""))
    for _ in range(2):
        counters.begin()
        counters.end()
    assert counters.counts == dict.fromkeys(keys, 105)
    assert counters.transactions == 210


@pytest.mark.parametrize(
    ("session_type", "window_s", "expected"),
    [(PostgresSession, 10.0, "off by 10\u00a0%"), (PostgresSession, 60.0, ""), (MysqlSession, 10.0, "")],
)
def test_counts_of_short_windows_say_that_sessions_report_late(
    monkeypatch: pytest.MonkeyPatch, session_type: type, window_s: float, expected: str
) -> None:
    clock = itertools.cycle([0.0, window_s])
    monkeypatch.setattr(engine_counters, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(session_type, "__init__", lambda *_: None)
    monkeypatch.setattr(session_type, "close", lambda _: None)
    monkeypatch.setattr(session_type, "read", lambda _: CounterReading({"commits": 1}, ""))
    kind = "postgresql" if session_type is PostgresSession else "mysql"
    counters = EngineCounters(sql_session.Dsn(kind, ""))
    for _ in range(2):
        counters.begin()
        counters.end()
    assert [expected in warning for warning in counters.warnings] == [True] * bool(expected)


def test_counters_that_were_reset_have_no_increase() -> None:
    before = CounterReading({"commits": 5}, "begun")
    assert CounterReading({"commits": 7, "log_bytes": 1}, "begun").since(before) == {
        "commits": 2,
        "log_bytes": 1,
    }
    assert CounterReading({"commits": 7}, "begun again").since(before) is None
    assert CounterReading({"commits": 4}, "begun").since(before) is None
    running = CounterReading({"commits": 5}, "begun", uptime_s=900)
    assert CounterReading({"commits": 7}, "begun", uptime_s=960).since(running) == {"commits": 2}
    assert CounterReading({"commits": 7}, "begun", uptime_s=60).since(running) is None


def test_a_dropped_database_takes_its_counts_away_and_a_new_one_adds_its_own() -> None:
    before = CounterReading({"commits": 5}, "", frozenset({1, 2}))
    assert CounterReading({"commits": 7}, "", frozenset({1, 3})).since(before) is None
    assert CounterReading({"commits": 7}, "", frozenset({1, 2, 3})).since(before) == {"commits": 2}


def test_a_dropped_table_leaves_the_counts_of_the_server() -> None:
    """Reads of tables and indexes are compared with each other, so that both are left out."""
    before = CounterReading({"commits": 5, "heap_reads": 9, "index_reads": 1}, "")
    after = CounterReading({"commits": 7, "heap_reads": 3, "index_reads": 2}, "")
    assert after.since(before) == {"commits": 2, "heap_reads": 0, "index_reads": 0}


@pytest.mark.parametrize(
    ("settings", "log_bytes"),
    [
        ({"innodb_log_file_size": "50331648", "innodb_log_files_in_group": "2"}, 100663296),
        ({"innodb_redo_log_capacity": "104857600", "innodb_log_file_size": "50331648"}, 104857600),
        ({}, None),
    ],
)
def test_sizes_of_mysql_have_the_whole_redo_log_and_do_without_it(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], log_bytes: int | None
) -> None:
    monkeypatch.setattr(MysqlSession, "__init__", lambda *_: None)
    files = [("data", 8), ("undo", 4)]
    monkeypatch.setattr(MysqlSession, "_rows", lambda _, sql: [(0,)] if "file_instances" in sql else files)
    monkeypatch.setattr(MysqlSession, "_variables", lambda *_: settings)
    session = MysqlSession("")
    session.engine, session.limits = "mysql", []
    known = {} if log_bytes is None else {Role.LOG: log_bytes}
    assert session.sizes() == {Role.DATA: 8, Role.UNDO: 4} | known
    assert len(session.limits) == (log_bytes is None)


@pytest.mark.parametrize(
    ("counts", "transactions"),
    [
        ({"commits": 90, "rollbacks": 10, "data_statements": 900}, 100),
        ({"commits": 90, "rollbacks": 10, "data_statements": 900, "write_transactions": 500}, 500),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900}, 900),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900, "write_transactions": 500}, 900),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900, "innodb_transactions": 870}, 870),
    ],
)
def test_transactions_of_mysql(counts: dict[str, int], transactions: int) -> None:
    assert MysqlSession.transactions(counts) == transactions
    assert bool(MysqlSession.uncounted(counts)) == (transactions < 870), "reads may commit by themselves"


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
    entry = sql_session.find_dsn(text, None)
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
        sql_session.find_dsn(text, None)
    assert SECRET not in str(refused.value)


def test_no_part_of_a_password_becomes_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sql_session.VARIABLE, f"postgresql://me:half@{SECRET}@db/bench")
    with pytest.raises(TierwiseError, match="write that @ as %40") as refused:
        sql_session.find_dsn(None, None)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv(sql_session.VARIABLE, "postgresql://me:half%40other@db/bench?options=-c%20a=b@c@d")
    assert sql_session.find_dsn(None, None) is not None


def test_a_file_is_refused_that_others_may_read(tmp_path: Path) -> None:
    file = tmp_path / "dsn"
    file.write_text(f"mysql://me:{SECRET}@db/bench\n")
    file.chmod(0o640)
    with pytest.raises(TierwiseError, match="chmod 600"):
        sql_session.find_dsn(None, file)
    file.chmod(0o600)
    entry = sql_session.find_dsn(None, file)
    assert entry is not None
    assert entry.text.endswith("@db/bench")
    with pytest.raises(TierwiseError, match="cannot read"):
        sql_session.find_dsn(None, tmp_path / "none")


def test_the_environment_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sql_session.VARIABLE, "mysql://me@db")
    entry = sql_session.find_dsn(None, None)
    assert entry is not None
    assert entry.kind == "mysql"
    option = sql_session.find_dsn("postgresql:///bench", None)
    assert option is not None
    assert option.kind == "postgresql"
    monkeypatch.delenv(sql_session.VARIABLE)
    assert sql_session.find_dsn(None, None) is None
