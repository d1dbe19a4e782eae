"""Workloads as data: what is read, and what is refused with which words."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from support.paths import ROOT
from tierwise import _core
from tierwise.lab import workloads as workload
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.expression import evaluate_expression
from tierwise.lab.workloads.object_operations import ObjectKind, ObjectOperation
from tierwise.lab.workloads.value_generators import Generator
from tierwise.lab.workloads.workload_spec import LapSpec, Step, Transaction, WorkloadSpec
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

MINIMAL = """
summary = "test"
[tables.t]
rows = "10 * scale"
columns.id = { kind = "counter" }
[parameters]
id = { kind = "uniform", low = 1, high = "10 * scale" }
[[transactions.read.steps]]
sql = "SELECT * FROM t WHERE id = :id"
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a workload's folder: workload.toml, and other files by keyword (``schema_sql`` and so on)."""

    def write_folder(
        toml: str = MINIMAL, schema_sql: str = "-- role: data\nCREATE TABLE t (id bigint);"
    ) -> Path:
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "workload.toml").write_text(toml, "utf-8")
        (folder / "schema.sql").write_text(schema_sql, "utf-8")
        return folder

    return write_folder


def refusal(folder: Path, scale: float = 1) -> str:
    with pytest.raises(TierwiseError) as raised:
        Workload.load(str(folder)).resolve(scale)
    assert raised.value.fix
    return raised.value.message


@pytest.mark.parametrize("name", workload.workload_names())
@pytest.mark.parametrize("scale", [0.01, 1, 3.7])
def test_shipped_workloads_are_valid_at_any_scale(name: str, scale: float) -> None:
    workload = Workload.load(name)
    assert workload.name == name
    assert workload.summary
    resolved = json.loads(workload.resolve(scale).json)
    assert resolved["transactions"]
    assert not any(isinstance(table.get("rows"), str) for table in resolved["tables"])


def test_order_entry_is_what_the_paper_needs() -> None:
    workload = Workload.load("order_entry")
    assert workload.spec.clients == 10
    assert workload.spec.think_ms == 0
    assert set(workload.spec.tables) == {"customer", "stock", "orders", "order_line"}
    assert set(workload.spec.transactions) == {"new_order", "payment", "order_status"}
    assert {role for role, _ in workload.schema} == {Role.DATA}
    assert {role for role, _ in workload.after_load} == {Role.INDEX}


def test_a_folder_of_the_users_own(write: Write) -> None:
    workload = Workload.load(str(write()))
    assert (workload.name, workload.spec.clients, workload.after_load) == ("mine", 1, [])
    assert workload.schema == [(Role.DATA, "CREATE TABLE t (id bigint)")]
    resolved = json.loads(workload.resolve(2).json)
    assert resolved["tables"][0]["rows"] == 20
    assert resolved["parameters"] == [
        {"name": "id", "generator": {"kind": "uniform", "low": 1, "high": 20}},
    ]


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "workloads.md").read_text("utf-8")
    files = re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text, "utf-8")
    assert [name for name, _ in files] == ["workload.toml", "schema.sql", "after_load.sql"]
    assert set(Workload.load(str(tmp_path)).spec.transactions) == {"change", "look"}


def test_the_documentation_names_every_generator_and_field() -> None:
    page = (ROOT / "docs" / "reference" / "workloads.md").read_text("utf-8")
    for model in get_args(get_args(Generator)[0]):
        kind = get_args(model.model_fields["kind"].annotation)[0]
        row = next(line for line in page.splitlines() if line.startswith(f"| `{kind}` |"))
        assert all(f"`{field}`" in row for field in model.model_fields if field != "kind"), row


@pytest.mark.parametrize("model", [WorkloadSpec, Transaction, Step, LapSpec, ObjectKind, ObjectOperation])
def test_the_documentation_names_every_field(model: type[BaseModel]) -> None:
    page = (ROOT / "docs" / "reference" / "workloads.md").read_text("utf-8")
    fields = [field.alias or name for name, field in model.model_fields.items()]
    assert [name for name in fields if not re.search(rf"`[^`\n]*\b{name}\b|^{name} = ", page, re.M)] == []


def test_statements_may_stand_in_a_file(write: Write) -> None:
    folder = write(MINIMAL.replace('sql = "SELECT * FROM t WHERE id = :id"', 'file = "read.sql"'))
    (folder / "read.sql").write_text("SELECT 1; -- one\nSELECT :id;\n", "utf-8")
    step = json.loads(Workload.load(str(folder)).resolve(1).json)["transactions"][0]["steps"][0]
    assert step["sql"] == ["SELECT 1", "-- one\nSELECT :id"]


def test_a_role_holds_until_the_next(write: Write) -> None:
    tables = "-- about\n-- role: data\nCREATE TABLE t (id int);\nCREATE TABLE u (id int);\n"
    script = tables + "-- role: index\nCREATE INDEX i ON t (id);"
    schema = Workload.load(str(write(schema_sql=script))).schema
    assert [role for role, _ in schema] == [Role.DATA, Role.DATA, Role.INDEX]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('summary = "test"', "", "workload.toml: summary: Field required"),
        ('summary = "test"', 'summary = "test"\nusers = 3', "workload.toml: users: no such field"),
        ('summary = "test"', 'summary = "test"\nclients = 0', "workload.toml: clients: "),
        ('summary = "test"', 'summary = "test"\nthink_ms = inf', "workload.toml: think_ms: "),
        ('summary = "test"', 'summary = "test"\nthink_ms = 1e300', "workload.toml: think_ms: "),
        ('summary = "test"', 'summary = "test"\nclients = 1_000_000', "workload.toml: clients: "),
        ('summary = "test"', "summary = ", "workload.toml: "),
        (
            '"10 * scale"\ncol',
            '"1_000_000_000_000 * scale"\ncol',
            "tables.t.rows is 1,000,000,000,000, above",
        ),
        ('kind = "counter"', 'kind = "text", low = 1, high = 20_000_000', "high 20000000 is above 16777216"),
        ('"10 * scale"\ncol', '"10 * size"\ncol', "tables.t.rows: '10 * size' names the unknown 'size'"),
        ('"10 * scale"\ncol', '"10 - 10"\ncol', "tables.t.rows is 0"),
        ('kind = "counter"', 'kind = "gauss"', "tables.t.columns.id: Input tag 'gauss'"),
        ('kind = "counter"', 'kind = "sequence"', "tables.t.columns.id: a sequence"),
        ('kind = "counter"', 'kind = "counter", modulo = 0', "tables.t.columns.id: divide and modulo"),
        ("low = 1", "low = 11", "parameters.id: low 11 is above high 10"),
        ("low = 1", "low = 1.5", "parameters.id.uniform.low"),
        ("low = 1, ", "", "parameters.id.uniform.low: Field required"),
        ("= :id", "= :key", "steps.0.sql uses the unknown parameter :key"),
        ("= :id", "= 1", "parameters.id is used by no statement"),
        ("sql = ", 'draw = ["x"]\nsql = ', "steps.0.draw names 'x'"),
        ("sql = ", 'repeat = "x"\nsql = ', "steps.0.repeat: 'x' names the unknown 'x'"),
        ("sql = ", "repeat = 0\nsql = ", "steps.0.repeat is 0"),
        (
            'sql = "SELECT * FROM t WHERE',
            'sum = "id"\nsql = "DELETE FROM t WHERE',
            "steps.0.sum names the column 'id', and no statement of the step returns rows",
        ),
        ("sql = ", 'file = "x.sql"\nsql = ', "transactions.read.steps.0"),
        ('"SELECT * FROM t WHERE id = :id"', '"-- nothing"', "transactions.read.steps.0 holds no statement"),
        ("transactions.read", "transactions.all", "transactions.all"),
        (
            "[parameters]",
            '[[laps]]\nname = "read"\nclients = 1_000_000\n[parameters]',
            "laps.0.clients is 1,000,000",
        ),
    ],
)
def test_mistakes_name_file_and_field(write: Write, old: str, new: str, message: str) -> None:
    assert old in MINIMAL
    error = refusal(write(MINIMAL.replace(old, new)))
    assert message in error
    assert "workload.toml" in error


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("CREATE TABLE t (id int);", "schema.sql: a statement before the first role"),
        ("-- role: tables\nCREATE TABLE t (id int);", "schema.sql: unknown role 'tables'"),
    ],
)
def test_mistakes_of_the_schema(write: Write, schema: str, message: str) -> None:
    assert message in refusal(write(schema_sql=schema))


def test_missing_files(write: Write, tmp_path: Path) -> None:
    folder = write(MINIMAL.replace("sql = ", "file = "))
    assert "No such file" in refusal(folder)
    (folder / "workload.toml").unlink()
    assert "workload.toml: No such file" in refusal(folder)
    with pytest.raises(TierwiseError, match=r"unknown workload 'order_entri'.*order_entry"):
        Workload.load("order_entri")


def test_a_scale_that_leaves_nothing_is_refused(write: Write) -> None:
    folder = write()
    assert "tables.t.rows is 0" in refusal(folder, scale=0.01)
    assert "scale 0" in refusal(folder, scale=0)
    assert "scale nan" in refusal(folder, scale=float("nan"))


@pytest.mark.parametrize(
    ("expression", "value"),
    [("round(2.6)", 3), ("min(from, 7) + max(1, 2)", 7), ("round(from / 2)", 2), ("1e3", 1000)],
)
def test_functions_and_names_that_are_words_of_python(expression: str, value: float) -> None:
    assert evaluate_expression(expression, {"from": 5}, "f") == value


@pytest.mark.parametrize("expression", ["round()", "min(1)", "max(1, 2, 3)", "abs(1)", "min(1, b=2)"])
def test_functions_take_what_they_take(expression: str) -> None:
    with pytest.raises(TierwiseError, match="f: "):
        evaluate_expression(expression, {}, "f")


@given(a=st.integers(-1000, 1000), b=st.integers(-1000, 1000), c=st.integers(1, 1000))
def test_arithmetic_is_python_s(a: int, b: int, c: int) -> None:
    assert evaluate_expression(f"({a} + b) * 2 - -{a} / c", {"b": b, "c": c}, "f") == (a + b) * 2 - -a / c


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "__import__('os')",
        "scale.real",
        "2 ** 9",
        "'a' * 3",
        "1 / 0",
        "True",
        "scale()",
        "1e300 * 1e300",
        "9" * 40,
    ],
)
def test_anything_but_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(TierwiseError, match="file: field"):
        evaluate_expression(expression, {"scale": 1}, "file: field")


@given(st.text(max_size=200))
def test_no_expression_does_worse_than_being_refused(expression: str) -> None:
    with contextlib.suppress(TierwiseError):
        assert isinstance(evaluate_expression(expression, {"scale": 1}, "f"), int | float)


def test_parameters_of_a_statement() -> None:
    assert _core.statement_parameters("SELECT :b, ':no', :a, :b::int") == ["b", "a"]
