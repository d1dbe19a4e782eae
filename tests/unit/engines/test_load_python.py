"""Clients whose engine is a Python object."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from tierwise import _core
from tierwise.model.errors import StatementError, TierwiseError

SEQUENCE = {"kind": "sequence", "start": 1, "after": None, "global": False}


class Engine:
    """Notes what its clients are asked; ``behave`` decides what a statement does."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[int] = set()
        self.fails: dict[int, Exception] = {}
        self.append_s = 0.0

    def connect(self) -> Client:
        return Client(self)

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == kind]


class Client:
    """One client."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: self.engine.calls.append((method, *arguments))

    def execute(self, statement: int, arguments: tuple[Any, ...], column: str | None) -> tuple[int, int]:
        self.engine.threads.add(threading.get_ident())
        self.engine.calls.append(("execute", statement, arguments, column))
        error = self.engine.fails.get(len(self.engine.of("execute")))
        if error is not None:
            raise error
        return 1, 5 if column else 0

    def query_number(self, sql: str) -> int | None:
        return {"greatest": 40}.get(sql)

    def append(self, table: str, columns: list[str], rows: list[tuple[Any, ...]]) -> int:
        time.sleep(self.engine.append_s)
        self.engine.calls.append(("append", table, columns, rows))
        return len(rows)


def program(sql: str, repeat: int = 1, tables: list[Any] | None = None, **step: Any) -> str:
    parameters = [
        {"name": "i", "generator": SEQUENCE},
        {"name": "name", "generator": {"kind": "label", "prefix": "p", "of": "i"}},
        {"name": "g", "generator": {**SEQUENCE, "after": "greatest"}},
    ]
    steps = [{"repeat": repeat, "draw": ["i"], "sql": [sql], **step}]
    only = {"name": "only", "weight": 1, "autocommit": False, "steps": steps}
    return json.dumps(
        {
            "name": "p",
            "think_ms": 0,
            "tables": tables or [],
            "parameters": parameters,
            "transactions": [only],
        }
    )


def test_one_client_is_asked_all_in_order() -> None:
    engine = Engine()
    clients = _core.Clients("python", engine, program("put :i :name :i :g", repeat=2), 1, 1)
    report = json.loads(clients.run(2, transaction="only"))
    clients.close()
    assert engine.calls == [
        ("prepare", "put ? ? ? ?", ["i", "name", "i", "g"]),
        ("begin",),
        ("execute", 0, (1, "p1", 1, 41), None),
        ("execute", 0, (2, "p2", 2, 41), None),
        ("commit",),
        ("begin",),
        ("execute", 0, (3, "p3", 3, 42), None),
        ("execute", 0, (4, "p4", 4, 42), None),
        ("commit",),
        ("close",),
    ]
    assert (report["rows"], report["checksum"], report["capped"]) == (4, None, False)


def test_clients_have_threads_of_their_own_and_add_up_a_column() -> None:
    engine = Engine()
    clients = _core.Clients("python", engine, program("get :i", sum={"column": "points"}), 3, 1)
    report = json.loads(clients.run(30))
    assert (report["transactions"], report["rows"], report["checksum"]) == (30, 30, 150)
    assert len(engine.threads) == 3
    assert {call[2] for call in engine.of("execute")} == {"points"}


def test_a_statement_that_gives_way_is_tried_again() -> None:
    engine = Engine()
    engine.fails[3] = StatementError("deadlock", retry=True)
    report = json.loads(_core.Clients("python", engine, program("put :i"), 1, 1).run(5))
    assert (report["transactions"], report["retries"]) == (5, 1)
    assert len(engine.of("rollback")) == 1


def test_a_capped_statement_ends_the_run_and_the_cap_is_lifted() -> None:
    engine = Engine()
    engine.fails[3] = StatementError("too long", capped=True)
    clients = _core.Clients("python", engine, program("put :i"), 1, 1)
    report = json.loads(clients.run(5, cap_s=100.0))
    assert (report["transactions"], report["capped"]) == (2, True)
    assert engine.calls[-2:] == [("rollback",), ("set_cap", None)]
    assert 0 < engine.of("set_cap")[0][0] <= 100
    assert not json.loads(clients.run(5))["capped"]


@pytest.mark.parametrize(
    ("error", "message"),
    [(StatementError("no such table"), "no such table"), (KeyError("k"), "KeyError: 'k'")],
)
def test_any_other_error_is_named_with_its_statement(error: Exception, message: str) -> None:
    engine = Engine()
    engine.fails[1] = error
    with pytest.raises(TierwiseError) as raised:
        _core.Clients("python", engine, program("put :i"), 1, 1).run(5)
    assert raised.value.message == f"only: {message} (in: put :i)"


def test_a_client_that_fails_ends_the_others() -> None:
    engine = Engine()
    engine.fails[50] = StatementError("no such table")
    clients = _core.Clients("python", engine, program("put :i"), 3, 1)
    before = time.monotonic()
    with pytest.raises(TierwiseError, match="no such table"):
        clients.run(seconds=60)
    assert time.monotonic() - before < 30
    assert len(engine.of("close")) == 3


def test_reconnecting_closes_the_old_clients_first() -> None:
    engine = Engine()
    clients = _core.Clients("python", engine, program("put :i"), 2, 1)
    clients.reconnect()
    clients.close()
    assert [call[0] for call in engine.calls] == 2 * (["prepare"] * 2 + ["close"] * 2)


def test_rows_come_in_batches() -> None:
    engine = Engine()
    columns = [
        {"name": "id", "generator": {"kind": "counter", "start": 1, "divide": 1, "modulo": None}},
        {"name": "x", "generator": {"kind": "choice", "values": [0.5], "weights": None}},
    ]
    tables = [{"name": "t", "rows": 25_000, "columns": columns}]
    assert _core.load_tables("python", engine, program("put :i", tables=tables), 1) == 25_000
    batches = engine.of("append")
    assert [len(rows) for _, _, rows in batches] == [10_000, 10_000, 5_000]
    assert {(table, *names) for table, names, _ in batches} == {("t", "id", "x")}
    assert [row for _, _, rows in batches for row in rows] == [(i, 0.5) for i in range(1, 25_001)]


def test_whoever_wants_hears_how_far_a_run_is() -> None:
    heard: list[int] = []
    clients = _core.Clients("python", Engine(), program("put :i"), 1, 1)
    total = json.loads(clients.run(seconds=1.2, progress=heard.append))["transactions"]
    assert heard == sorted(heard)
    assert 0 < heard[0] <= heard[-1] <= total


def test_whoever_wants_hears_how_far_a_load_is() -> None:
    column = {"name": "id", "generator": {"kind": "uniform", "low": 1, "high": 9}}
    tables = [{"name": "t", "rows": 50_000, "columns": [column]}]
    heard: list[int] = []
    engine = Engine()
    engine.append_s = 0.5
    _core.load_tables("python", engine, program("put :i", tables=tables), 1, progress=heard.append)
    assert heard == sorted(heard)
    assert 0 < heard[0] <= heard[-1] <= 50_000


def test_what_a_listener_raises_ends_the_run() -> None:
    def complain(done: int) -> None:
        raise ValueError(f"enough: {done}")

    clients = _core.Clients("python", Engine(), program("put :i"), 2, 1)
    before = time.monotonic()
    with pytest.raises(ValueError, match="enough"):
        clients.run(seconds=60, progress=complain)
    assert time.monotonic() - before < 30


def test_an_unknown_driver_is_named() -> None:
    with pytest.raises(TierwiseError, match='unknown driver "oracle": use one of'):
        _core.Clients("oracle", "", program("put :i"), 1, 1)
