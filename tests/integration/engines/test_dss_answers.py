"""The 22 queries and the refresh functions give the same on every engine that is here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tierwise import _core
from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.mariadb.file_roles import DATABASE
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.dss.query_parameters import QUERIES
from tierwise.lab.workloads.program import Program
from tierwise.model.errors import TierwiseError

SF = 0.01
Execute = Callable[[str], list[Any]]


def program(dialect: str) -> Program:
    constants = {"scale_factor": SF, "seed": 0, "power": 1, "streams": 1}
    return Workload.load("dss").resolve(1, constants, dialect)


def files(resolved: Program, directory: Path) -> Iterator[tuple[str, Path]]:
    for table in json.loads(resolved.json)["tables"]:
        source, file = table["source"], directory / table["name"]
        _core.write_tpch(source["table"], SF, 1, 1, str(file), source.get("refresh_sets"))
        yield table["name"], file


@contextmanager
def in_duckdb(directory: Path) -> Iterator[tuple[Program, Execute]]:
    resolved = program("duckdb")
    with duckdb.connect() as database:
        for _, statement in resolved.schema:
            database.execute(statement)
        for table, file in files(resolved, directory):
            database.execute(f"COPY {table} FROM '{file}' (DELIMITER '|', HEADER false, QUOTE '')")
        for _, statement in resolved.after_load:
            database.execute(statement)
        yield resolved, lambda sql: database.execute(sql).fetchall()


@contextmanager
def in_sqlite(directory: Path) -> Iterator[tuple[Program, Execute]]:
    resolved = program("sqlite")
    database = sqlite3.connect(":memory:")
    for _, statement in resolved.schema:
        database.execute(statement)
    for table, file in files(resolved, directory):
        rows = [line.split("|") for line in file.read_text().splitlines()]
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    for _, statement in resolved.after_load:
        database.execute(statement)
    yield resolved, lambda sql: database.execute(sql).fetchall()
    database.close()


@contextmanager
def loaded(engine: Engine, resolved: Program) -> Iterator[None]:
    with ledger.make_directory("test-dss", mode=0o711) as place, engine:
        places = {role: place / role.value for role in engine.roles}
        for directory in places.values():
            directory.mkdir()
        engine.init(places)
        engine.start()
        engine.execute_schema(resolved.schema)
        engine.load_tables(resolved.json, 1)
        engine.execute_schema(resolved.after_load)
        yield


@contextmanager
def in_postgres(_: Path) -> Iterator[tuple[Program, Execute]]:
    engine, resolved = engines.create_engine("postgres", {"fsync": "off"}), program("postgres")
    with loaded(engine, resolved), psycopg.connect(engine.dsn(), autocommit=True) as connection:

        def execute(sql: str) -> list[Any]:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

        yield resolved, execute


@contextmanager
def in_mariadb(_: Path) -> Iterator[tuple[Program, Execute]]:
    try:
        engine = engines.create_engine("mariadb")
    except TierwiseError as error:
        pytest.skip(str(error))
    resolved = program("mysql")
    with loaded(engine, resolved), engine._known_process().connect() as connection:
        connection.select_db(DATABASE)

        def execute(sql: str) -> list[Any]:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())

        yield resolved, execute


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    with in_duckdb(tmp_path_factory.mktemp("tables")) as (resolved, execute):
        return asked(resolved, execute)


def asked(resolved: Program, execute: Execute) -> dict[str, list[Any]]:
    sql = statements(resolved)
    return {f"q{query}": execute(sql[f"q{query}"][0]) for query in QUERIES}


def statements(resolved: Program) -> dict[str, list[str]]:
    return {
        transaction["name"]: transaction["steps"][0]["sql"]
        for transaction in json.loads(resolved.json)["transactions"]
    }


def differences(ours: list[Any], theirs: list[Any]) -> list[tuple[Any, Any]]:
    pairs = [pair for row, other in zip(ours, theirs, strict=True) for pair in zip(row, other, strict=True)]
    return [(sample, other) for sample, other in pairs if not same(sample, other)]


def same(ours: object, other: object) -> bool:
    try:
        first, second = Decimal(str(ours)), Decimal(str(other))
    except InvalidOperation:
        return str(ours) == str(other)
    # MariaDB divides to four decimals more than it was given; SQLite has binary fractions only.
    return abs(first - second) <= max(Decimal("0.0001"), abs(first) * Decimal("1e-6"))


@pytest.mark.parametrize("open_engine", [in_postgres, in_mariadb, in_sqlite, in_duckdb])
def test_engines_agree_and_refresh_pairs_leave_the_sizes(
    open_engine: Any, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    with open_engine(tmp_path) as (resolved, execute):
        answers = asked(resolved, execute)
        different = {query: differences(expected[query], answers[query]) for query in expected}
        assert {query: pairs for query, pairs in different.items() if pairs} == {}

        sql = statements(resolved)
        sizes = []
        for function in ("rf1", "rf2", "s1.rf1", "s1.rf2"):
            for statement in sql[function]:
                execute(statement)
            sizes.append(execute("SELECT count(*), count(DISTINCT o_orderkey) FROM orders")[0])
        assert [tuple(size) for size in sizes] == [(15015, 15015), (15000, 15000)] * 2
        orphans = "SELECT count(*) FROM lineitem WHERE l_orderkey NOT IN (SELECT o_orderkey FROM orders)"
        assert tuple(execute(orphans)[0]) == (0,)
        new = "SELECT count(*) FROM orders WHERE o_orderkey % 32 BETWEEN 8 AND 15"
        assert tuple(execute(new)[0]) == (30,)
