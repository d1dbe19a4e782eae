"""The engine's own counters beside a recording."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.engine_sessions import root_of
from support.watched_servers import SECRET, administrator, commit, dsn_of, watched_mariadb, watched_postgres
from tierwise.capture import sql_session
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.mysql import MysqlSession
from tierwise.capture.sql_session import UnreadableError
from tierwise.capture.target import of_pid
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError

TRANSACTIONS = 300


@pytest.fixture
def postgres() -> Iterator[PostgresEngine]:
    with watched_postgres() as made:
        yield made


def connected(engine: PostgresEngine | MariadbEngine, user: str = "watcher") -> EngineCounters:
    return EngineCounters.connect(dsn_of(engine, user), of_pid(engine.server_pid or 0))


def test_postgres_counts_transactions_and_log(postgres: PostgresEngine) -> None:
    counters = connected(postgres)
    counters.begin()
    commit(postgres.dsn(), TRANSACTIONS)
    counters.end()
    assert ["up to 1 s late" in warning for warning in counters.warnings] == [True]
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=10)
    assert counters.counts["log_bytes"] > 50 * TRANSACTIONS
    assert counters.counts["page_hits"] > TRANSACTIONS


def test_postgres_counts_full_page_images_after_a_checkpoint(postgres: PostgresEngine) -> None:
    counters = connected(postgres)
    with administrator(postgres) as connection:
        connection.execute("CHECKPOINT")
    counters.begin()
    commit(postgres.dsn(), TRANSACTIONS)
    counters.end()
    assert ["up to 1 s late" in warning for warning in counters.warnings] == [True]
    assert 0 < counters.counts["full_page_images"] < TRANSACTIONS, "one for each page, not for each row"
    assert "wal_compression" in counters.settings


def test_counters_that_were_reset_are_not_used(postgres: PostgresEngine) -> None:
    counters = connected(postgres)
    counters.begin()
    with administrator(postgres) as connection:
        connection.execute("SELECT pg_stat_reset()")
    counters.end()
    assert counters.transactions is None
    (warning,) = counters.warnings
    assert "reset" in warning


def test_a_server_that_is_gone_costs_one_warning(postgres: PostgresEngine) -> None:
    target = of_pid(postgres.server_pid or 0)
    counters = EngineCounters.connect(dsn_of(postgres), target)
    counters.begin()
    postgres.stop()
    counters.end()
    counters.begin()
    counters.end()
    (warning,) = counters.warnings
    assert UnreadableError.LOST in warning
    assert "watcher" not in warning
    with pytest.raises(TierwiseError, match="cannot be read") as refused:
        EngineCounters.connect(dsn_of(postgres), target)
    assert SECRET not in str(refused.value)


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbEngine]:
    with watched_mariadb({}) as made:
        yield made


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "autocommit"])
def test_mariadb_counts_transactions(mariadb: MariadbEngine, explicit: bool) -> None:
    counters = connected(mariadb)
    counters.begin()
    with root_of(mariadb) as connection, connection.cursor() as cursor:
        for number in range(TRANSACTIONS):
            for statement in ("BEGIN", None, "COMMIT") if explicit else (None,):
                cursor.execute(statement or f"INSERT INTO tierwise.part VALUES ({number})")
    counters.end()
    assert counters.warnings == []
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=5)
    assert counters.counts["log_bytes"] > 50 * TRANSACTIONS


def test_innodb_counts_explicit_and_autocommitted_transactions_alike(mariadb: MariadbEngine) -> None:
    """``Com_commit`` has the explicit ones only; InnoDB's own counters need PROCESS."""
    counters = connected(mariadb, "monitor")
    counters.begin()
    with root_of(mariadb) as connection, connection.cursor() as cursor:
        for number in range(TRANSACTIONS):
            for statement in ("BEGIN", None, "COMMIT") if number % 3 == 0 else (None,):
                cursor.execute(statement or f"INSERT INTO tierwise.part VALUES ({number})")
    counters.end()
    assert counters.counts["commits"] == TRANSACTIONS / 3
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=5)


def test_the_right_to_read_is_missing(mariadb: MariadbEngine) -> None:
    wrong = sql_session.parse(dsn_of(mariadb).text.replace(SECRET, "other"), "test")
    with pytest.raises(UnreadableError) as refused:
        MysqlSession(wrong.text)
    assert refused.value.reason == UnreadableError.DENIED
