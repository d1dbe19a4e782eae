"""The engine's own counters beside a recording: where they are, what they count, what is kept of a DSN."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in
from support.engine_sessions import root_of, superuser_dsn
from tierwise.capture import (
    EngineCounters,
    Schedule,
    Target,
    dsn,
    engine_counters,
    mysql_counters,
    record_running,
)
from tierwise.capture import rules as rule_files
from tierwise.capture.counter_reading import DENIED, LOST, Reading, UnreadableError
from tierwise.engines.mariadb.binaries import installed
from tierwise.engines.mariadb.engine import MariadbEngine
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host import tracing
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.recording import Recording

SECRET = "planted-9f3a"
TRANSACTIONS = 300
POSTGRES = rule_files.load("postgres")
MARIADB = rule_files.load("mariadb")


@pytest.fixture
def postgres() -> Iterator[PostgresEngine]:
    with open_directory() as directory, PostgresEngine("postgres", embedded(), {}) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        with psycopg.connect(superuser_dsn(made), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE watcher LOGIN PASSWORD '{SECRET}'")
        made.execute_schema([(Role.DATA, "CREATE TABLE part (id integer)")])
        yield made


def watchers(engine: PostgresEngine) -> dsn.Dsn:
    keywords = dict(word.split("=") for word in engine.dsn().replace("'", "").split())
    socket = keywords["host"].replace("/", "%2F")
    url = f"postgresql://watcher:{SECRET}@/{keywords['dbname']}?host={socket}&port={keywords['port']}"
    return dsn.parse(url, "test")


def commit(address: str, times: int) -> None:
    with psycopg.connect(address) as connection:
        for number in range(times):
            connection.execute("INSERT INTO part VALUES (%s)", [number])
            connection.commit()


def test_postgres_counts_transactions_and_log(postgres: PostgresEngine) -> None:
    counters = EngineCounters.connect(watchers(postgres), POSTGRES)
    counters.begin()
    commit(postgres.dsn(), TRANSACTIONS)
    counters.end()
    assert counters.warnings == []
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=10)
    assert counters.counts["log_bytes"] > 50 * TRANSACTIONS
    assert counters.counts["page_hits"] > TRANSACTIONS


def test_no_password_reaches_a_recording(postgres: PostgresEngine, run_dir: Path, tmp_path: Path) -> None:
    if (reason := tracing.impossible()) is not None:
        pytest.skip(f"nothing can be recorded here: {reason}")
    target = Target(postgres.processes, POSTGRES, POSTGRES.role_of)
    load = threading.Thread(target=commit, args=(postgres.dsn(), 2000))
    load.start()
    counters = EngineCounters.connect(watchers(postgres), POSTGRES)
    out = tmp_path / "recording"
    record_running(target, out, Schedule(3.0, 0.5, 0.2), lambda _: None, counters)
    load.join()
    about = Recording.open(out).about
    assert about.transactions == about.counters["commits"] + about.counters["rollbacks"] > 0
    assert about.data_directory_bytes is not None
    assert about.data_directory_bytes > 10_000_000
    for file in out.iterdir():
        content = file.read_bytes()
        assert SECRET.encode() not in content
        assert b"watcher" not in content


def test_counters_that_were_reset_are_not_used(postgres: PostgresEngine) -> None:
    counters = EngineCounters.connect(watchers(postgres), POSTGRES)
    counters.begin()
    with psycopg.connect(superuser_dsn(postgres), autocommit=True) as connection:
        connection.execute("SELECT pg_stat_reset()")
    counters.end()
    assert counters.transactions is None
    (warning,) = counters.warnings
    assert "reset" in warning


def test_a_server_that_is_gone_costs_one_warning(postgres: PostgresEngine) -> None:
    counters = EngineCounters.connect(watchers(postgres), POSTGRES)
    counters.begin()
    postgres.stop()
    counters.end()
    counters.begin()
    counters.end()
    (warning,) = counters.warnings
    assert LOST in warning
    assert "watcher" not in warning
    with pytest.raises(TierwiseError, match="cannot be read") as refused:
        EngineCounters.connect(watchers(postgres), POSTGRES)
    assert SECRET not in str(refused.value)


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbEngine]:
    if reason := CASES[0].missing():
        pytest.skip(reason)
    with open_directory() as directory, MariadbEngine("mariadb", installed()) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        with root_of(made) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER watcher@localhost IDENTIFIED BY '{SECRET}'")
            cursor.execute("CREATE TABLE tierwise.part (id integer) ENGINE = InnoDB")
        yield made


def mysql_watchers(engine: MariadbEngine) -> dsn.Dsn:
    socket = engine.settings()["socket"]
    return dsn.parse(f"mysql://watcher:{SECRET}@localhost?unix_socket={socket}", "test")


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "autocommit"])
def test_mariadb_counts_transactions(mariadb: MariadbEngine, explicit: bool) -> None:
    counters = EngineCounters.connect(mysql_watchers(mariadb), MARIADB)
    counters.begin()
    with root_of(mariadb) as connection, connection.cursor() as cursor:
        for number in range(TRANSACTIONS):
            for statement in ("BEGIN", None, "COMMIT") if explicit else (None,):
                cursor.execute(statement or f"INSERT INTO tierwise.part VALUES ({number})")
    counters.end()
    assert counters.warnings == []
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=5)
    assert counters.counts["log_bytes"] > 50 * TRANSACTIONS


def test_the_right_to_read_is_missing(mariadb: MariadbEngine) -> None:
    wrong = dsn.parse(mysql_watchers(mariadb).text.replace(SECRET, "other"), "test")
    with pytest.raises(UnreadableError) as refused:
        mysql_counters.read(wrong.text)
    assert refused.value.reason == DENIED


@pytest.mark.parametrize("engine", ["mariadb", "sqlite"])
def test_a_dsn_of_another_engine_is_refused(engine: str) -> None:
    with pytest.raises(TierwiseError, match=f"postgresql is given, and {engine} is recorded"):
        EngineCounters.connect(dsn.parse("postgresql:///bench", "test"), rule_files.load(engine))


def test_windows_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 100, 500, 505])
    keys = ("commits", "rollbacks")
    monkeypatch.setitem(
        engine_counters._READERS,
        "postgresql",
        lambda _: Reading(dict.fromkeys(keys, next(readings)), ""),
    )
    counters = EngineCounters(dsn.Dsn("postgresql", ""))
    for _ in range(2):
        counters.begin()
        counters.end()
    assert counters.counts == dict.fromkeys(keys, 105)
    assert counters.transactions == 210


@pytest.mark.parametrize(
    ("counts", "transactions"),
    [
        ({"commits": 90, "rollbacks": 10, "data_statements": 900}, 100),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900}, 900),
        ({"commits": 0, "rollbacks": 0, "data_statements": 900, "innodb_transactions": 870}, 870),
    ],
)
def test_transactions_of_mysql(counts: dict[str, int], transactions: int) -> None:
    assert mysql_counters.transactions(counts) == transactions


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
    found = dsn.find(text, None)
    assert found is not None
    assert found.kind == kind
    assert "me" not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@db/bench",
        f"postgresql://db/bench?password={SECRET}",
        f"host=db password={SECRET}",
        f"mysql://me:{SECRET}@db/bench",
        SECRET,
    ],
)
def test_a_password_on_the_command_line_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError) as refused:
        dsn.find(text, None)
    assert SECRET not in str(refused.value)


def test_a_file_is_refused_that_others_may_read(tmp_path: Path) -> None:
    file = tmp_path / "dsn"
    file.write_text(f"mysql://me:{SECRET}@db/bench\n")
    file.chmod(0o640)
    with pytest.raises(TierwiseError, match="chmod 600"):
        dsn.find(None, file)
    file.chmod(0o600)
    found = dsn.find(None, file)
    assert found is not None
    assert found.text.endswith("@db/bench")
    with pytest.raises(TierwiseError, match="cannot read"):
        dsn.find(None, tmp_path / "none")


def test_the_environment_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dsn.VARIABLE, "mysql://me@db")
    found = dsn.find(None, None)
    assert found is not None
    assert found.kind == "mysql"
    option = dsn.find("postgresql:///bench", None)
    assert option is not None
    assert option.kind == "postgresql"
    monkeypatch.delenv(dsn.VARIABLE)
    assert dsn.find(None, None) is None
