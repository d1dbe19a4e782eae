"""The engine's own counters beside a recording."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in
from support.engine_sessions import root_of, superuser_dsn
from tierwise.capture import EngineCounters, dsn
from tierwise.capture import rules as rule_files
from tierwise.capture.mysql import MysqlSession
from tierwise.capture.sql_session import DENIED, LOST, UnreadableError
from tierwise.engines.mariadb.binaries import installed
from tierwise.engines.mariadb.engine import MariadbEngine
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role

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
        MysqlSession(wrong.text)
    assert refused.value.reason == DENIED
