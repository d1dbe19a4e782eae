"""Transactions of real sessions, recorded: as many as their clients ended, whichever way they say so."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import psycopg
import pymysql
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in
from support.engine_sessions import client_of
from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.placement import Role
from tierwise.predict.replayer import Replayer

ROUNDS = 40
TABLE = [(Role.DATA, "CREATE TABLE item (id integer PRIMARY KEY, n integer NOT NULL)")]
UPDATE = "UPDATE item SET n = n + 1 WHERE id = 1"
SELECT = "SELECT n FROM item WHERE id = 1"
INSERT = "INSERT INTO item (id, n) VALUES (2, 0)"
DELETE = "DELETE FROM item WHERE id = 2"

Postgres: TypeAlias = "psycopg.Connection[Any]"
Mariadb: TypeAlias = "pymysql.Connection[pymysql.cursors.Cursor]"


@dataclass(frozen=True)
class Seen:
    """What a recording tells."""

    transactions: int
    statuses: dict[str | None, int]
    """Of calls that sent something to a client, how many have each status."""


def record(engine: Engine, out: Path, round_: Callable[[], None]) -> Seen:
    """Record a few rounds whole; this thread is the client."""
    rules = load_rules(engine.name)

    def role_of(path: str) -> Role | None:
        return engine.role_of(Path(path)) or rules.role_of(path)

    client = threading.get_native_id()
    target = RecordingTarget(engine.processes, rules, role_of, engine=engine.name, clients=lambda: [client])
    with RecordingSession(target, out, BurstSchedule(None, duty=1.0), lambda _: None) as session:
        session.begin_burst()
        for _ in range(ROUNDS):
            round_()
        session.end_burst()
        session.finish()
    query = (
        f"SELECT transaction_status, count(*) FROM '{out}/calls.parquet' c "
        f"JOIN '{out}/threads.parquet' t ON t.thread = c.thread "
        "WHERE kind = 'send' AND class = 'session' AND size_bytes > 1 GROUP BY 1"
    )
    with duckdb.connect() as data:
        statuses = dict(data.sql(query).fetchall())
    return Seen(Replayer.open(out).work.transactions, statuses)


def assert_transactions(seen: Seen, each: int) -> None:
    """So many in each round; the first and the last may be cut by the recording's edges.

    The status of a call is unknown where its buffer was not in memory when the kernel's program read it.
    """
    assert abs(seen.transactions - each * ROUNDS) <= 2, seen
    assert seen.statuses.get(None, 0) <= 2, seen


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresEngine]:
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres(), {}) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        made.execute_schema(TABLE)
        with psycopg.connect(made.dsn(), autocommit=True) as connection:
            connection.execute("INSERT INTO item (id, n) VALUES (1, 0)")
        yield made


def explicit(connection: Postgres) -> None:
    with connection.transaction():
        connection.execute(UPDATE)
        connection.execute(SELECT)


def by_itself(connection: Postgres) -> None:
    connection.execute(UPDATE)
    connection.execute(SELECT)


def prepared(connection: Postgres) -> None:
    with connection.transaction():
        connection.execute(UPDATE, prepare=True)
        connection.execute("SELECT n FROM item WHERE id = %s", [1], prepare=True)


def rolled_back(connection: Postgres) -> None:
    connection.execute("BEGIN")
    connection.execute(UPDATE)
    with suppress(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO item (id, n) VALUES (1, 0)")
    connection.execute("ROLLBACK")


def in_one_request(connection: Postgres) -> None:
    connection.execute(f"BEGIN; {UPDATE}; {SELECT}; COMMIT")


def pipelined(connection: Postgres) -> None:
    with connection.pipeline() as pipeline:
        for _ in range(3):
            connection.execute(UPDATE)
            connection.execute(SELECT)
            pipeline.sync()


@pytest.mark.parametrize(
    ("round_", "each"),
    [(explicit, 1), (by_itself, 2), (prepared, 1), (rolled_back, 1), (in_one_request, 1), (pipelined, 3)],
)
def test_postgres(
    postgres: PostgresEngine, tmp_path: Path, round_: Callable[[Postgres], None], each: int
) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        seen = record(postgres, tmp_path / "r", lambda: round_(connection))
    assert_transactions(seen, each)


def forget_statuses(out: Path) -> None:
    """Make it a recording of before replies were looked at."""
    calls, about = out / "calls.parquet", json.loads((out / "about.json").read_text())
    older = out / "older.parquet"
    with duckdb.connect() as data:
        data.sql(f"COPY (SELECT * EXCLUDE transaction_status FROM '{calls}') TO '{older}' (COMPRESSION zstd)")
    older.rename(calls)
    content = calls.read_bytes()
    about["tables"]["calls"] |= {"size_bytes": len(content), "crc32": zlib.crc32(content)}
    (out / "about.json").write_text(json.dumps(about))


@pytest.mark.parametrize("round_", [explicit, prepared])
def test_without_statuses_transactions_are_told_by_their_requests(
    postgres: PostgresEngine, tmp_path: Path, round_: Callable[[Postgres], None]
) -> None:
    out = tmp_path / "r"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        record(postgres, out, lambda: round_(connection))
    forget_statuses(out)
    assert abs(Replayer.open(out).work.transactions - ROUNDS) <= 2


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbEngine]:
    if reason := CASES[0].missing():
        pytest.skip(reason)
    with open_directory() as directory, MariadbEngine("mariadb", installed_mariadb()) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        made.execute_schema(TABLE)
        with connected(made) as connection:
            run(connection, "INSERT INTO item (id, n) VALUES (1, 0)")
        yield made


def connected(engine: MariadbEngine, autocommit: bool = True) -> Mariadb:
    flags = pymysql.constants.CLIENT.MULTI_STATEMENTS
    return client_of(engine, autocommit=autocommit, client_flag=flags)


def run(connection: Mariadb, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            while cursor.nextset():
                pass


@pytest.mark.parametrize(
    ("statements", "autocommit", "each"),
    [
        (("BEGIN", SELECT, UPDATE, DELETE, INSERT, "COMMIT"), True, 1),
        (("BEGIN", UPDATE, "ROLLBACK"), True, 1),
        ((DELETE, INSERT, SELECT), True, 3),
        ((UPDATE,), True, 1),
        ((UPDATE, SELECT, "COMMIT"), False, 1),
        ((f"BEGIN; {UPDATE}; COMMIT",), True, 1),
        ((f"{DELETE}; {INSERT}",), True, 2),
        (("EXECUTE begins", "EXECUTE changes", "EXECUTE commits"), True, 1),
    ],
    ids=[
        "explicit",
        "rollback",
        "alone",
        "update",
        "autocommit off",
        "one request",
        "two in one",
        "prepared",
    ],
)
def test_mariadb(
    mariadb: MariadbEngine, tmp_path: Path, statements: tuple[str, ...], autocommit: bool, each: int
) -> None:
    with connected(mariadb, autocommit) as connection:
        for name, statement in (("begins", "BEGIN"), ("changes", DELETE), ("commits", "COMMIT")):
            run(connection, f"PREPARE {name} FROM '{statement}'")
        seen = record(mariadb, tmp_path / "r", lambda: run(connection, *statements))
    assert_transactions(seen, each)
