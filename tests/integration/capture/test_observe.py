"""Observing a PostgreSQL under load: what is kept, what is missing, and what is never written."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.engine_contract import until
from support.engine_sessions import superuser_dsn
from support.forwarder import forwarding
from support.watched_servers import SECRET, administrator, dsn_of, watched_postgres
from tierwise.capture.observe import observe_server
from tierwise.capture.postgres_session import APPLICATION, PostgresSession
from tierwise.capture.sql_session import parse_dsn
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario
from tierwise.recording import OBSERVATION_FILE, Observation


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

    return observe_server(dsn_of(engine, "monitor"), out, seconds, rate_hz=50.0, cores=2, status=status)


def test_a_load_is_seen_and_answers(engine: PostgresEngine, tmp_path: Path) -> None:
    with load(engine) as done:
        before = sum(done)
        observed = seen(engine, tmp_path / "o", 4.0)
        most = sum(done) - before
    assert observed.sessions == pytest.approx(3, abs=0.2)
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


def test_the_server_counts_the_looks_that_are_subtracted(engine: PostgresEngine) -> None:
    """Else a look is subtracted from the transactions of the load."""
    with (
        contextlib.closing(PostgresSession(superuser_dsn(engine))) as server,
        contextlib.closing(PostgresSession(superuser_dsn(engine))) as sampling,
    ):
        before = server.read()
        for _ in range(50):
            sampling.look(0.05)
        time.sleep(PostgresSession.late_s + 0.2)
        sampling.look(0.0)
        increases = server.read().since(before)
        assert increases is not None and increases["commits"] >= sampling.asked - 1


def test_reads_in_other_databases_count_as_data(engine: PostgresEngine) -> None:
    """Else a read of an index in the connected database has all their waits."""
    with (
        administrator(engine) as connection,
        contextlib.closing(PostgresSession(superuser_dsn(engine))) as server,
    ):
        server.watch()
        before = server.read()
        connection.execute("CREATE DATABASE elsewhere TEMPLATE template0 STRATEGY file_copy")
        elsewhere = f"{superuser_dsn(engine)} dbname=elsewhere"
        with psycopg.connect(elsewhere, autocommit=True) as other:
            other.execute("SELECT count(*) FROM pg_proc")
        time.sleep(PostgresSession.late_s + 0.2)
        increases = server.read().since(before)
        connection.execute("DROP DATABASE elsewhere")
    assert increases is not None and increases["heap_reads"] > 50 > increases["index_reads"]


def test_a_server_that_does_not_track_its_sessions_is_not_observed(engine: PostgresEngine) -> None:
    with (
        contextlib.closing(
            PostgresSession(f"{superuser_dsn(engine)} options='-c track_activities=off'")
        ) as server,
        pytest.raises(TierwiseError, match="track_activities is off") as raised,
    ):
        server.watch()
    assert "track_activities = on" in raised.value.fix


def test_a_pooler_s_session_is_neither_kept_nor_named(engine: PostgresEngine, tmp_path: Path) -> None:
    """A pooler gives it to clients afterwards: with the observer's name, they would not be looked at."""
    words = dict(word.split("=") for word in dsn_of(engine, "monitor").text.split())
    socket = Path(words["host"]) / f".s.PGSQL.{words['port']}"
    with forwarding(socket, as_pooler=True) as port, administrator(engine) as connection:
        source = parse_dsn(f"{dsn_of(engine, 'monitor').text} host=127.0.0.1 port={port}", "test")
        with pytest.raises(TierwiseError, match="through a pooler"):
            observe_server(source, tmp_path / "o", 1.0)
        with closing(PostgresSession(source.text)):
            named = (
                "SELECT count(*) FROM pg_stat_activity WHERE usename = 'monitor' AND application_name = ''"
            )
            assert connection.execute(named).fetchone() == (1,)


def test_sessions_are_unused_until_they_act(engine: PostgresEngine) -> None:
    with (
        administrator(engine) as idle,
        administrator(engine) as begun,
        contextlib.closing(PostgresSession(superuser_dsn(engine))) as sampling,
    ):
        begun.execute("BEGIN")
        time.sleep(0.1)
        numbers = {session.info.backend_pid for session in (idle, begun)}
        assert sampling.look(0.0).unused.keys() >= numbers
        begun.execute("SELECT 1")
        look = sampling.look(0.0)
        assert begun.info.backend_pid in look.active and idle.info.backend_pid in look.unused


@pytest.mark.parametrize(("version", "doubts"), [(130_000, 1), (140_000, 0)])
def test_connections_that_an_old_server_counts_are_a_doubt(
    engine: PostgresEngine, version: int, doubts: int
) -> None:
    with contextlib.closing(PostgresSession(superuser_dsn(engine))) as sampling:
        sampling._number = version
        sampling.look(0.0)
        for _ in range(4):
            with administrator(engine) as client:
                client.execute("SELECT 1")
                sampling.look(0.0)
        assert sum("connect often" in limit for limit in sampling.limits) == doubts


def test_a_query_waits_for_what_its_parallel_workers_wait_for(engine: PostgresEngine) -> None:
    """Else a query that reads in workers waits for no device."""
    stop = threading.Event()

    def work() -> None:
        with administrator(engine) as connection:
            for setting in ("min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"):
                connection.execute(f"SET {setting} = 0".encode())
            connection.execute("SET parallel_leader_participation = off")
            while not stop.is_set():
                connection.execute("SELECT count(*) FROM item AS a, item AS b WHERE a.number <> b.id")

    thread = threading.Thread(target=work)
    with contextlib.closing(PostgresSession(superuser_dsn(engine))) as sampling:
        thread.start()
        states = Counter(
            state.wait_class for _ in range(100) for state in sampling.look(0.01).states.elements()
        )
        stop.set()
        thread.join()
    assert states["cpu"] > 0.5 * states.total()
    assert any("parallel workers" in limit for limit in sampling.limits)


def test_files_of_other_databases_count_as_data(engine: PostgresEngine) -> None:
    with contextlib.closing(PostgresSession(superuser_dsn(engine))) as session:
        session.watch()
        alone = session.sizes()[Role.DATA]
        with administrator(engine) as connection:
            connection.execute("CREATE DATABASE another TEMPLATE template0")
        assert session.sizes()[Role.DATA] > alone + 1_000_000
        (text,) = [limit for limit in session.limits if "count as data" in limit]
        with administrator(engine) as connection:
            connection.execute("DROP DATABASE another")
    assert text.startswith("files of 1 other database count as data")


def test_neither_password_nor_address_is_stored(engine: PostgresEngine, tmp_path: Path) -> None:
    with load(engine, 1):
        seen(engine, tmp_path / "o", 0.5)
    file = tmp_path / "o" / OBSERVATION_FILE
    text = file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert not [word for word in (SECRET, "monitor", "host=", "password") if word in text]


def test_a_user_without_rights_is_told_the_grant(engine: PostgresEngine, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError) as raised:
        observe_server(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
    assert "GRANT pg_monitor TO watcher" in raised.value.fix
    assert SECRET not in str(raised.value) and not (tmp_path / "o").exists()


def test_a_server_that_does_nothing_is_not_observed(engine: PostgresEngine, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="no client session did anything"):
        seen(engine, tmp_path / "o", 0.5)
    assert not (tmp_path / "o").exists()


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
