"""Observing a PostgreSQL under load: what is kept, what is missing, and what is never written."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_contract import until
from support.engine_sessions import superuser_dsn
from support.watched_servers import SECRET, administrator, dsn_of, watched_postgres
from tierwise.capture.observe import observe
from tierwise.capture.postgres import APPLICATION, PostgresSession
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario
from tierwise.recording import OBSERVATION_FILE, Observation

OWN = 2
"""Sessions of the engine itself, which are idle."""


@pytest.fixture(scope="module")
def engine() -> Iterator[PostgresEngine]:
    with watched_postgres() as made:
        with administrator(made) as connection:
            connection.execute("CREATE TABLE item (id integer PRIMARY KEY, number integer)")
            connection.execute("INSERT INTO item SELECT n, 0 FROM generate_series(1, 1000) AS n")
        yield made


@contextlib.contextmanager
def load(engine: PostgresEngine, clients: int = 3) -> Iterator[list[int]]:
    """Clients that commit an update again and again; the number of commits of each."""
    stop, done = threading.Event(), [0] * clients

    def work(number: int) -> None:
        with administrator(engine) as connection:
            while not stop.is_set():
                connection.execute("UPDATE item SET number = number + 1 WHERE id = %s", [number])
                done[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: all(done))
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def seen(
    engine: PostgresEngine, out: Path, seconds: float = 2.0, begun: threading.Event | None = None
) -> Observation:
    """Observe; say when the first look is taken."""

    def status(line: str) -> None:
        if begun and line.startswith("observing"):
            begun.set()

    return observe(dsn_of(engine, "monitor"), out, seconds, rate_hz=50.0, cores=2, status=status)


def test_a_load_is_seen_and_answers(engine: PostgresEngine, tmp_path: Path) -> None:
    with load(engine) as done:
        before = sum(done)
        observed = seen(engine, tmp_path / "o", 4.0)
        most = sum(done) - before
    assert observed.sessions == pytest.approx(3 + OWN, abs=0.2)
    assert observed.sessions_in("log_sync", "log_lock", role=Role.LOG) > 0.1
    assert observed.transactions is not None
    assert 0.5 * most < observed.transactions < 1.1 * most, (
        "its own statements are no transactions of the load"
    )
    assert observed.counts["log_flushes"] > 0 and observed.counts["log_bytes"] > 0
    assert (
        observed.sizes[Role.LOG] >= 16 << 20
        and observed.sizes[Role.DATA] > 0
        and observed.sizes[Role.INDEX] > 0
    )
    assert Observation.open(tmp_path / "o") == observed
    (answer,) = Predictor.open(tmp_path / "o").predict([Scenario(placement={"log": "nvme-dc"})])
    assert answer.from_waits and answer.speedup and answer.bound


def test_files_of_other_databases_count_as_data(engine: PostgresEngine) -> None:
    with contextlib.closing(PostgresSession(superuser_dsn(engine))) as session:
        session.watch()
        alone = session.sizes()[Role.DATA]
        with administrator(engine) as connection:
            connection.execute("CREATE DATABASE another TEMPLATE template0")
        assert session.sizes()[Role.DATA] > alone + 1_000_000
        (text,) = [limit for limit in session.limits if "other databases count as data" in limit]
        with administrator(engine) as connection:
            connection.execute("DROP DATABASE another")
    assert text.startswith("1 other")


def test_neither_password_nor_address_is_stored(engine: PostgresEngine, tmp_path: Path) -> None:
    with load(engine, 1):
        seen(engine, tmp_path / "o", 0.5)
    file = tmp_path / "o" / OBSERVATION_FILE
    text = file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert not [word for word in (SECRET, "monitor", "host=", "password") if word in text]


def test_a_user_without_rights_is_told_the_grant(engine: PostgresEngine, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError) as raised:
        observe(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
    assert "GRANT pg_monitor TO watcher" in raised.value.fix
    assert SECRET not in str(raised.value) and not (tmp_path / "o").exists()


def test_a_server_that_does_nothing_has_a_profile_and_no_prediction(
    engine: PostgresEngine, tmp_path: Path
) -> None:
    observed = seen(engine, tmp_path / "o", 0.5)
    assert observed.sessions_in("client") == observed.sessions and observed.transactions == 0
    with pytest.raises(TierwiseError, match="counts no transaction"):
        Predictor.open(tmp_path / "o")


def test_a_lost_connection_keeps_what_was_measured(engine: PostgresEngine, tmp_path: Path) -> None:
    begun = threading.Event()

    def cut() -> None:
        begun.wait(60)
        time.sleep(1)
        with administrator(engine) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                [APPLICATION],
            )

    thread = threading.Thread(target=cut)
    with load(engine):
        thread.start()
        observed = seen(engine, tmp_path / "o", 60.0, begun)
    thread.join()
    assert observed.duration_s < 30 and observed.ticks > 1
    assert any("ended after" in limit and "connection failed" in limit for limit in observed.limits)
    assert any("counters are of the first" in limit for limit in observed.limits)
    assert observed.transactions is None and "transactions" not in observed.counts


def test_statistics_reset_meanwhile_are_not_counted(
    engine: PostgresEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tierwise.capture.observe._READ_EACH_S", 0.5)

    begun = threading.Event()

    def reset() -> None:
        begun.wait(60)
        time.sleep(1)
        with administrator(engine) as connection:
            connection.execute("SELECT pg_stat_reset()")

    thread = threading.Thread(target=reset)
    with load(engine):
        thread.start()
        observed = seen(engine, tmp_path / "o", 4.0, begun)
    thread.join()
    assert any("statistics were reset meanwhile" in limit for limit in observed.limits)
    assert 0 < observed.counted_s < observed.duration_s
