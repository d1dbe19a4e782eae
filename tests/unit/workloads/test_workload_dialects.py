"""What workloads say to engines that do not speak PostgreSQL's SQL."""

from __future__ import annotations

import json

import pytest
from syrupy.assertion import SnapshotAssertion

from tierwise import _core
from tierwise.lab import workloads as workload
from tierwise.lab.workloads import Workload, sql_translation
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

OTHERS = ["mysql", "sqlite", "duckdb"]


def statements(program_json: str) -> list[str]:
    transactions = json.loads(program_json)["transactions"]
    return [sql for transaction in transactions for step in transaction["steps"] for sql in step["sql"]]


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", [name for name in workload.workload_names() if name != "dss"])
def test_sql_of_every_workload(name: str, language: str, snapshot: SnapshotAssertion) -> None:
    program = Workload.load(name).resolve(1, dialect=language)
    made = [f"{role}: {sql}" for role, sql in program.schema + program.after_load]
    assert "\n".join([*made, *statements(program.json)]) == snapshot


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", workload.workload_names())
def test_parameters_survive(name: str, language: str) -> None:
    workload = Workload.load(name)
    asked = statements(workload.resolve(1).json)
    shown = statements(workload.resolve(1, dialect=language).json)
    assert len(shown) == len(asked)
    for before, after in zip(asked, shown, strict=True):
        assert set(_core.statement_parameters(before)) == set(_core.statement_parameters(after))


@pytest.mark.parametrize("language", OTHERS)
def test_order_of_null_is_left_to_the_engine_unless_it_is_said(language: str) -> None:
    assert (
        sql_translation.translate_statement("SELECT a FROM t ORDER BY a", language, "f")
        == "SELECT a FROM t ORDER BY a"
    )
    translated = sql_translation.translate_statement("SELECT a FROM t ORDER BY a NULLS FIRST", language, "f")
    assert translated.startswith("SELECT a FROM t ORDER BY ")


def test_duckdb_makes_a_table_with_an_index_with_its_primary_key() -> None:
    """It can add a key to a table without an index only."""
    schema = [
        (Role.DATA, "CREATE TABLE t (a integer)"),
        (Role.DATA, "CREATE TABLE U (a integer)"),
        (Role.INDEX, "CREATE INDEX i ON u (a)"),
    ]
    keys = [(Role.INDEX, f"ALTER TABLE {name} ADD PRIMARY KEY (a)") for name in "tu"]
    before, after = sql_translation.translate_schema(schema, keys, "duckdb", "f")
    assert [sql for _, sql in before] == [
        "CREATE TABLE t (a INT)",
        "CREATE TABLE U (a INT, PRIMARY KEY (a))",
        "CREATE INDEX i ON u(a)",
    ]
    assert after == [(Role.INDEX, "ALTER TABLE t ADD PRIMARY KEY (a)")]


def test_sqlite_makes_tables_with_their_primary_keys() -> None:
    schema = [(Role.DATA, "CREATE TABLE t (a int, b int)")]
    after = [(Role.INDEX, "ALTER TABLE t ADD PRIMARY KEY (b, a)"), (Role.INDEX, "CREATE INDEX i ON t (a)")]
    assert sql_translation.translate_schema(schema, after, "sqlite", "f") == (
        [(Role.DATA, "CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (b, a))")],
        [(Role.INDEX, "CREATE INDEX i ON t(a)")],
    )


def test_a_key_is_moved_only_if_its_statement_adds_nothing_else() -> None:
    schema = [(Role.DATA, "CREATE TABLE t (a int)")]
    both = "ALTER TABLE t ADD PRIMARY KEY (a), ADD CONSTRAINT c CHECK (a > 0)"
    with pytest.raises(TierwiseError, match="cannot be said in the dialect sqlite"):
        sql_translation.translate_schema(schema, [(Role.INDEX, both)], "sqlite", "f")


@pytest.mark.parametrize("language", OTHERS)
def test_only_storage_parameters_are_left_out(language: str) -> None:
    def made(statement: str) -> str:
        ((_, sql),), _ = sql_translation.translate_schema([(Role.DATA, statement)], [], language, "f")
        return sql

    plain = made("CREATE TABLE t (a int)")
    assert made("CREATE TABLE t (a int) USING heap WITH (fillfactor = 70)") == plain
    assert made("CREATE TEMPORARY TABLE t (a int)") == plain.replace("CREATE", "CREATE TEMPORARY")
    for refused in (
        "UNLOGGED TABLE t (a int)",
        "TABLE t (a int) PARTITION BY RANGE (a)",
        "TABLE t (a int) TABLESPACE x",
    ):
        with pytest.raises(TierwiseError, match="cannot be said"):
            made(f"CREATE {refused}")


@pytest.mark.parametrize(
    ("statement", "language"),
    [
        ("SELECT FROM WHERE", "mysql"),
        ("VACUUM t", "duckdb"),
        ("INSERT INTO t (a) VALUES (:a) ON CONFLICT (a) DO NOTHING", "mysql"),
        ("SELECT a FROM t FOR UPDATE", "sqlite"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (a)", "sqlite"),
        ("SELECT 'a", "duckdb"),
        ("SELECT a FROM t WHERE a = $1", "mysql"),
        ("SELECT a FROM t WHERE a = $1", "sqlite"),
        ("SELECT a FROM t WHERE a = ?", "sqlite"),
        ("SELECT a FROM t WHERE a = ?", "duckdb"),
        (f"SELECT {'(' * 5000}1{')' * 5000}", "sqlite"),
    ],
)
def test_what_cannot_be_said_is_refused(statement: str, language: str) -> None:
    with pytest.raises(TierwiseError, match=r"^file: ") as raised:
        sql_translation.translate_statement(statement, language, "file")
    assert "\n" not in str(raised.value)
    assert statement[:8] in raised.value.message
