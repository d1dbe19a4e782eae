"""What a recording keeps of a server's address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.engine_contract import open_directory, places_in
from support.engine_sessions import superuser_dsn
from tierwise.capture import (
    EngineCounters,
    Schedule,
    Target,
    dsn,
    record_running,
)
from tierwise.capture import rules as rule_files
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host import tracing
from tierwise.model.roles import Role
from tierwise.recording import Recording

SECRET = "planted-9f3a"
POSTGRES = rule_files.load("postgres")


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


def test_no_password_reaches_a_recording(postgres: PostgresEngine, run_dir: Path, tmp_path: Path) -> None:
    if (reason := tracing.impossible()) is not None:
        pytest.skip(f"nothing can be recorded here: {reason}")
    target = Target(postgres.processes, POSTGRES)
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
