"""The engine's own counters beside a recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.engine_sessions import root_of
from support.watched_servers import SECRET, administrator, commit, dsn_of, watched_mariadb, watched_postgres
from tierwise import _core
from tierwise.capture import sql_session
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.mysql_session import MysqlSession
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.sql_session import SqlReadError
from tierwise.capture.target import target_of_process
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError

TRANSACTIONS = 300


@pytest.fixture
def postgres() -> Iterator[PostgresEngine]:
    with watched_postgres() as made:
        yield made


def connected(engine: PostgresEngine | MariadbEngine, user: str = "watcher") -> EngineCounters:
    return EngineCounters.connect(dsn_of(engine, user), target_of_process(engine.server_pid or 0))


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


def test_parallel_workers_are_no_transactions(postgres: PostgresEngine) -> None:
    """The server counts two commits of each worker."""
    with administrator(postgres) as connection:
        if connection.info.server_version < 180_000:
            pytest.skip("parallel workers are counted since PostgreSQL 18")
        connection.execute("INSERT INTO part SELECT generate_series(1, 10000)")
        for setting in ("min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"):
            connection.execute(f"SET {setting} = 0".encode())
        counters = connected(postgres)
        counters.begin()
        for _ in range(50):
            connection.execute("SELECT count(*) FROM part")
    counters.end()
    assert counters.counts["parallel_workers"] >= 50
    assert counters.transactions == pytest.approx(50, abs=10)


def test_a_login_is_no_transaction(postgres: PostgresEngine) -> None:
    """Where a client connects for each transaction, the server commits two."""
    counters = connected(postgres)
    counters.begin()
    for _ in range(50):
        commit(postgres.dsn(), 1)
    counters.end()
    assert counters.transactions == pytest.approx(50, abs=10)


def test_a_standby_is_known(postgres: PostgresEngine) -> None:
    """Its replay of the log is of no client's session."""
    directory = Path(f"/proc/{postgres.server_pid}/cwd").readlink()

    def warnings() -> list[str]:
        target = target_of_process(postgres.server_pid or 0)
        return _core.server_warnings(target.pid or 0, target.rules, target.root)

    assert not warnings()
    postgres.stop()
    directory.joinpath("standby.signal").touch()
    postgres.start()
    assert warnings() == [_core.STANDBY]
    with closing(PostgresSession(dsn_of(postgres, "monitor").text)) as session:
        session.watch()
        assert _core.STANDBY in session.limits


def test_counters_of_a_dropped_database_are_missed(postgres: PostgresEngine) -> None:
    """The sums of those that stay grew by less than the load did."""
    with administrator(postgres) as connection:
        connection.execute("CREATE DATABASE another TEMPLATE template0")
        counters = connected(postgres)
        counters.begin()
        commit(postgres.dsn(), TRANSACTIONS)
        connection.execute("DROP DATABASE another")
        counters.end()
    assert counters.transactions is None
    assert any("a database was dropped" in warning for warning in counters.warnings)


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
    target = target_of_process(postgres.server_pid or 0)
    counters = EngineCounters.connect(dsn_of(postgres), target)
    counters.begin()
    postgres.stop()
    counters.end()
    counters.begin()
    counters.end()
    (warning,) = counters.warnings
    assert SqlReadError.LOST in warning
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


@pytest.mark.parametrize("user", ["monitor", "watcher"])
def test_explicit_and_autocommitted_transactions_count_alike(mariadb: MariadbEngine, user: str) -> None:
    """``Com_commit`` has the explicit ones only; InnoDB's own counters need PROCESS, its numbers do not."""
    counters = connected(mariadb, user)
    counters.begin()
    with root_of(mariadb) as connection, connection.cursor() as cursor:
        for number in range(TRANSACTIONS):
            for statement in ("BEGIN", None, "COMMIT") if number % 3 == 0 else (None,):
                cursor.execute(statement or f"INSERT INTO tierwise.part VALUES ({number})")
    counters.end()
    assert counters.counts["commits"] == TRANSACTIONS / 3
    assert counters.transactions == pytest.approx(TRANSACTIONS, abs=5)


def test_the_right_to_read_is_missing(mariadb: MariadbEngine) -> None:
    wrong = sql_session.parse_dsn(dsn_of(mariadb).text.replace(SECRET, "other"), "test")
    with pytest.raises(SqlReadError) as refused:
        MysqlSession(wrong.text)
    assert refused.value.reason == SqlReadError.DENIED
