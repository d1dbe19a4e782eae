"""Runs of one transaction on real servers: checksums, caps, reconnecting, rows of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

ROWS = 1234
ACCOUNTS = 20
SETTINGS = {"postgres": {"deadlock_timeout": "1ms"}, "mariadb": {}}
SCHEMA = [
    (Role.DATA, "CREATE TABLE filled (id INTEGER NOT NULL, name VARCHAR(60), part DOUBLE PRECISION)"),
    (Role.DATA, "CREATE TABLE pilot (id INTEGER PRIMARY KEY, name VARCHAR(40), points INTEGER, note TEXT)"),
    (Role.DATA, "CREATE TABLE account (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"),
]
PARAMETERS = {
    "i": {"kind": "sequence", "start": 1, "after": None, "global": False},
    "name": {"kind": "label", "prefix": "Jonny_", "of": "i"},
    "odd": {"kind": "choice", "values": ["it's\t\\."], "weights": None},
    "coin": {"kind": "uniform", "low": 1, "high": 2},
}
COUNTER = {"kind": "counter", "start": 1, "divide": 1, "modulo": None}
COLUMNS = {
    "name": {"kind": "label", "prefix": "a\tb\\", "of": "id"},
    "id": COUNTER,
    "part": {"kind": "choice", "values": [0.5], "weights": None},
}
# Of each transaction: its statement, how often it is repeated, and what it adds to the checksum.
TRANSACTIONS: dict[str, tuple[str, int, Any]] = {
    "write": ("INSERT INTO pilot VALUES (:i, :name, :i, :odd)", 100, {"parameter": "i"}),
    "read": ("SELECT name, points FROM pilot WHERE id = :i", 100, {"column": "points"}),
    "named": ("SELECT id FROM pilot WHERE name = :name AND note = :odd", 10, {"column": "id"}),
    "total": ("SELECT sum(points) AS total, count(*) FROM pilot", 1, {"column": "total"}),
    "none": ("SELECT max(points) AS total FROM pilot WHERE id < 0", 1, {"column": "total"}),
    "touch": ("UPDATE pilot SET points = points WHERE id = :i", 100, "rows"),
    "wrong": ("SELECT points FROM pilot WHERE id = :i", 1, {"column": "nowhere"}),
    "endless": ("SELECT count(*) FROM filled a, filled b, filled c WHERE a.part < b.id + c.id", 1, "rows"),
    "all": ("UPDATE account SET n = n + 1", 1, None),
    "two": ("UPDATE account SET n = n + 1 WHERE id = :coin", 2, "rows"),
    "paid": ("SELECT n FROM account", 1, {"column": "n"}),
    "filled": ("SELECT id FROM filled WHERE name LIKE '%b%' AND part = 0.5", 1, {"column": "id"}),
}


def named(generators: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "generator": generator} for name, generator in generators.items()]


def drawn(sql: str) -> list[str]:
    return [name for name in ("i", "coin") if f":{name}" in sql or (":name" in sql and name == "i")]


def program() -> str:
    transactions = [
        {
            "name": name,
            "weight": 1,
            "autocommit": False,
            "steps": [{"repeat": repeat, "draw": drawn(sql), "sql": [sql], "sum": added}],
        }
        for name, (sql, repeat, added) in TRANSACTIONS.items()
    ]
    accounts = {"id": COUNTER, "n": {"kind": "choice", "values": [0], "weights": None}}
    tables = [
        {"name": "filled", "rows": ROWS, "columns": named(COLUMNS)},
        {"name": "account", "rows": ACCOUNTS, "columns": named(accounts)},
    ]
    parts = {"tables": tables, "parameters": named(PARAMETERS), "transactions": transactions}
    return json.dumps({"name": "laps", "think_ms": 0, **parts})


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A server with 1234 rows loaded and 1000 objects written by a lap of one client."""
    with ExitStack() as undo:
        place = undo.enter_context(ledger.make_directory("test-laps", mode=0o711))
        try:
            server = undo.enter_context(engines.create_engine(request.param, SETTINGS[request.param]))
        except TierwiseError as error:
            pytest.skip(f"{request.param}: {error}")
        places = {role: place / role.value for role in server.roles}
        for directory in places.values():
            directory.mkdir()
        server.init(places)
        server.start()
        server.execute_schema(SCHEMA)
        assert server.load_tables(program(), 1) == ROWS + ACCOUNTS
        written = lap(server, "write", 10)
        assert (written["rows"], written["checksum"]) == (1000, 1000 * 1001 // 2)
        yield server


def lap(engine: Engine, transaction: str, count: int = 1, clients: int = 1, **options: Any) -> dict[str, Any]:
    connected = engine.clients(program(), clients, 1)
    try:
        report: dict[str, Any] = json.loads(connected.run(count, transaction=transaction, **options))
    finally:
        connected.close()
    return report


@pytest.mark.parametrize(
    ("transaction", "count", "rows", "checksum"),
    [
        ("read", 10, 1000, 1000 * 1001 // 2),
        ("named", 2, 20, 20 * 21 // 2),
        ("total", 2, 2, 1000 * 1001),
        ("none", 1, 1, 0),
        ("touch", 10, 1000, 1000),
        ("filled", 1, ROWS, ROWS * (ROWS + 1) // 2),
    ],
)
def test_a_lap_adds_up_what_it_saw(
    engine: Engine, transaction: str, count: int, rows: int, checksum: int
) -> None:
    report = lap(engine, transaction, count)
    assert (report["transactions"], report["rows"], report["checksum"]) == (count, rows, checksum)
    assert not report["capped"]


def test_each_lap_of_the_same_clients_begins_at_the_first_object(engine: Engine) -> None:
    clients = engine.clients(program(), 1, 1)
    for reconnect in (False, False, True):
        if reconnect:
            clients.reconnect()
        report = json.loads(clients.run(3, transaction="read"))
        assert report["checksum"] == 300 * 301 // 2
    clients.close()
    with pytest.raises(TierwiseError, match="no connections"):
        clients.run(1, transaction="read")
    clients.reconnect()
    assert json.loads(clients.run(1, transaction="read"))["rows"] == 100
    clients.close()


def test_the_server_stops_a_statement_at_the_cap_and_the_clients_go_on(engine: Engine) -> None:
    clients = engine.clients(program(), 2, 1)
    capped = json.loads(clients.run(8, transaction="endless", cap_s=0.3))
    assert (capped["capped"], capped["transactions"], capped["checksum"]) == (True, 0, 0)
    assert 0.3 <= capped["elapsed_s"] < 60
    after = json.loads(clients.run(4, transaction="read", cap_s=600))
    assert (after["capped"], after["transactions"]) == (False, 4)
    clients.close()


def test_what_waits_at_the_cap_is_undone_and_not_counted(engine: Engine) -> None:
    before = lap(engine, "paid")["checksum"]
    report = lap(engine, "all", 10**9, clients=4, cap_s=0.5)
    assert report["capped"]
    assert lap(engine, "paid")["checksum"] == before + report["rows"]


def test_a_column_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(TierwiseError, match=r'wrong: the result has no column "nowhere".*\(in: SELECT'):
        lap(engine, "wrong")


def test_deadlocks_are_retried_and_counted(engine: Engine) -> None:
    before = lap(engine, "paid")["checksum"]
    report = lap(engine, "two", 1000, clients=4)
    assert (report["transactions"], report["checksum"], report["errors"]) == (1000, 2000, 0)
    assert report["retries"] > 0
    assert lap(engine, "paid")["checksum"] == before + 2000


def test_an_unknown_transaction_is_named(engine: Engine) -> None:
    with pytest.raises(TierwiseError, match='there is no transaction "nothing"'):
        lap(engine, "nothing")
