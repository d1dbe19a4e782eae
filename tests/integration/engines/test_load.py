"""Loading and clients on a real PostgreSQL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tierwise import _core
from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.workloads import Workload
from tierwise.model.errors import TierwiseError
from tierwise.results import Latency

SCALE = 0.05
CUSTOMERS = 2500


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with (
        ledger.make_directory("test-load", mode=0o711) as place,
        engines.create_engine("postgres", {"fsync": "off"}) as server,
    ):
        places = {role: place / role.value for role in server.roles}
        for directory in places.values():
            directory.mkdir()
        server.init(places)
        server.start()
        yield server


@pytest.fixture
def database(engine: Engine) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(engine.dsn(), autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def fill(engine: Engine, workload: Workload, seed: int = 1) -> int:
    engine.execute_schema(workload.schema)
    rows = _core.load_tables("postgres", engine.dsn(), workload.resolve(SCALE).json, seed)
    engine.execute_schema(workload.after_load)
    return rows


def value_of(database: psycopg.Connection[Any], sql: str) -> Any:
    row = database.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]


def simple(sql: str, parameters: dict[str, dict[str, Any]] | None = None, **transaction: Any) -> str:
    """A workload of one transaction of one statement, as the clients read it."""
    named = [{"name": name, "generator": generator} for name, generator in (parameters or {}).items()]
    steps = [{"repeat": 1, "draw": [], "sql": [sql]}]
    only = {"name": "only", "weight": 1, "autocommit": True, "steps": steps} | transaction
    return json.dumps(
        {"name": "simple", "think_ms": 0, "tables": [], "parameters": named, "transactions": [only]}
    )


def test_order_entry_from_load_to_latency(engine: Engine, database: psycopg.Connection[Any]) -> None:
    workload = Workload.load("order_entry")
    rows = fill(engine, workload)
    tables = {table: value_of(database, f"SELECT count(*) FROM {table}") for table in workload.spec.tables}
    assert tables == {"customer": CUSTOMERS, "stock": 2500, "orders": 2500, "order_line": 10000}
    assert rows == sum(tables.values())
    assert value_of(database, "SELECT count(*) FROM orders JOIN order_line ON ol_order = o_id") == 10000

    clients = _core.Clients("postgres", engine.dsn(), workload.resolve(SCALE).json, 10, 5)
    clients.run(transactions=50)
    orders, payments = (
        value_of(database, "SELECT count(*) FROM orders"),
        value_of(database, "SELECT sum(c_payments) FROM customer"),
    )
    report = json.loads(clients.run(transactions=1003))

    latency = {name: Latency.model_validate(part) for name, part in report["latency"].items()}
    assert report["transactions"] == latency["all"].count == 1003
    assert report["errors"] == 0
    assert value_of(database, "SELECT count(*) FROM orders") - orders == latency["new_order"].count
    assert value_of(database, "SELECT sum(c_payments) FROM customer") - payments == latency["payment"].count
    assert value_of(database, "SELECT sum(o_lines) FROM orders") == value_of(
        database, "SELECT count(*) FROM order_line"
    )
    assert latency["all"].p50_us <= latency["all"].p99_us <= latency["all"].max_us
    assert latency["new_order"].p50_us > latency["payment"].p50_us
    assert report["elapsed_s"] == pytest.approx((report["ended_ns"] - report["started_ns"]) / 1e9)
    assert abs(report["ended_ns"] - time.monotonic_ns()) < 60e9
    assert 0 < report["client_cpu_s"] <= report["elapsed_s"] * 1.1
    assert set(report["histograms"]) == set(report["latency"])


def test_new_clients_go_on_where_earlier_ones_stopped(
    engine: Engine, database: psycopg.Connection[Any]
) -> None:
    workload = Workload.load("order_entry")
    fill(engine, workload)
    for _ in range(2):
        _core.Clients("postgres", engine.dsn(), workload.resolve(SCALE).json, 3, 5).run(transactions=60)
    assert value_of(database, "SELECT max(o_id) - count(*) FROM orders") < 60


def test_the_same_seed_loads_the_same_rows(engine: Engine, database: psycopg.Connection[Any]) -> None:
    workload = Workload.load("order_entry")

    def digest(seed: int) -> str:
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        fill(engine, workload, seed)
        texts = "SELECT md5(string_agg(c::text, ',' ORDER BY c_id)) FROM customer c"
        return str(value_of(database, texts))

    first = digest(1)
    assert digest(1) == first
    assert digest(2) != first


def test_single_commit_commits_every_transaction(engine: Engine, database: psycopg.Connection[Any]) -> None:
    workload = Workload.load("single_commit")
    fill(engine, workload)
    before = value_of(database, "SELECT pg_current_xact_id()::text::bigint")
    report = json.loads(
        _core.Clients("postgres", engine.dsn(), workload.resolve(SCALE).json, 1, 5).run(transactions=200)
    )
    assert report["transactions"] == 200
    assert value_of(database, "SELECT pg_current_xact_id()::text::bigint") - before >= 200


def test_values_reach_columns_of_any_type(engine: Engine, database: psycopg.Connection[Any]) -> None:
    database.execute(
        "CREATE TABLE t (a smallint, b int, c float8, d numeric, e text, f uuid, g date, h real)"
    )
    generators: dict[str, dict[str, Any]] = {
        name: {"kind": "uniform", "low": 7, "high": 7} for name in ("a", "b", "d", "h")
    }
    generators["c"] = {"kind": "choice", "values": [0.5], "weights": None}
    generators["e"] = {"kind": "choice", "values": ["it's\t\\."], "weights": None}
    generators["f"] = {"kind": "uuid"}
    generators["g"] = {"kind": "choice", "values": ["2003-05-17"], "weights": None}
    insert = simple("INSERT INTO t VALUES (:a, :b, :c, :d, :e, :f, :g, :h)", generators)
    _core.Clients("postgres", engine.dsn(), insert, 1, 1).run(transactions=1)

    columns = [{"name": name, "generator": generator} for name, generator in sorted(generators.items())]
    table = json.loads(insert) | {"tables": [{"name": "t", "rows": 1, "columns": columns}]}
    assert _core.load_tables("postgres", engine.dsn(), json.dumps(table), 1) == 1

    row = "a = 7 AND b = 7 AND c = 0.5 AND d = 7 AND e = E'it''s\\t\\\\.' AND g = '2003-05-17' AND h = 7"
    assert value_of(database, f"SELECT count(*) FROM t WHERE {row} AND f IS NOT NULL") == 2


def test_sessions_carry_the_name_of_the_clients(engine: Engine, database: psycopg.Connection[Any]) -> None:
    clients = _core.Clients("postgres", engine.dsn(), simple("SELECT 1"), 3, 1)
    named = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tierwise-client'"
    assert value_of(database, named) == 3
    del clients


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist (in: SELECT * FROM nowhere)'),
        ("SELECT 1 / :zero", "only: division by zero (in: SELECT 1 / :zero)"),
    ],
)
def test_a_failing_statement_is_named(engine: Engine, sql: str, message: str) -> None:
    zero = {"zero": {"kind": "uniform", "low": 0, "high": 0}} if ":zero" in sql else {}
    with pytest.raises(TierwiseError) as raised:
        _core.Clients("postgres", engine.dsn(), simple(sql, zero), 2, 1).run(transactions=10)
    assert message in raised.value.message


def test_bad_addresses(engine: Engine) -> None:
    with pytest.raises(TierwiseError, match="database address"):
        _core.Clients("postgres", "nonsense", simple("SELECT 1"), 1, 1)
    with pytest.raises(TierwiseError, match=r"client 0 cannot connect.*No such file"):
        _core.Clients("postgres", "host=/nowhere user=me", simple("SELECT 1"), 1, 1)
    with pytest.raises(TierwiseError, match=r"cannot connect: .*connection slots"):
        _core.Clients("postgres", engine.dsn(), simple("SELECT 1"), 1000, 1)


def test_a_run_survives_neither_its_server_nor_hangs(engine: Engine) -> None:
    clients = _core.Clients("postgres", engine.dsn(), simple("SELECT 1"), 4, 1)
    crash = threading.Timer(0.5, engine.crash_stop)
    crash.start()
    try:
        with pytest.raises(TierwiseError, match=r"only: .* \(in: SELECT 1\)"):
            clients.run(seconds=60)
        with pytest.raises(TierwiseError, match="no connections"):
            clients.run(transactions=1)
    finally:
        crash.join()
        engine.start()


def test_ctrl_c_ends_a_run_whose_server_does_not_answer(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "run.py"
    program.write_text(
        "from tierwise import _core\n"
        f"clients = _core.Clients('postgres', {engine.dsn()!r}, {simple('SELECT pg_sleep(600)')!r}, 2, 1)\n"
        "print('running', flush=True)\n"
        "clients.run(transactions=4)\n"
    )
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"running\n"
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
