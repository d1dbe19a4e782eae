"""Programs: laps, constants, operations on objects, and workloads that are like another."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.program import Lap
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

OBJECTS = """
summary = "test"
[constants]
n = 10
[objects.pilot]
key = "id"
fields = { id = "integer", name = "text", weight = "real" }
indexes = ["name"]
[parameters]
i = { kind = "sequence", scope = "client" }
name = { kind = "label", prefix = "p", of = "i" }
weight = { kind = "uniform", low = 1, high = "n" }
[[transactions.write.steps]]
object = { insert = "pilot", with = { id = "i" } }
repeat = "n"
draw = ["i"]
sum = ":i"
[[laps]]
name = "write"
count = "n / 5"
checksum = "n * (n + 1) / 2"
"""


def write(folder: Path, toml: str, **files: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "workload.toml").write_text(toml, "utf-8")
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text, "utf-8")
    return str(folder)


def steps(program_json: str) -> list[dict[str, Any]]:
    return [step for transaction in json.loads(program_json)["transactions"] for step in transaction["steps"]]


def test_laps_in_order(tmp_path: Path) -> None:
    more = '[[laps]]\nname = "again"\ntransaction = "write"\nclients = 2\nbefore = ["cold"]\ntimed = false\n'
    program = Workload.load(write(tmp_path / "w", OBJECTS + more)).resolve(1)
    assert [stage.streams for stage in program.stages] == [
        [
            [
                Lap("write", transaction="write", count=2, checksum=55),
                Lap("again", transaction="write", clients=2, before=frozenset({"cold"}), timed=False),
            ]
        ]
    ]


def test_a_mix_has_no_stages() -> None:
    assert Workload.load("order_entry").resolve(1).stages == []


@settings(deadline=None, max_examples=60)
@given(batches=st.integers(1, 500), commit_every=st.integers(1, 5000))
def test_melbourne_s_checksums_are_the_paper_s_at_any_size(batches: int, commit_every: int) -> None:
    n = batches * commit_every
    program = Workload.load("melbourne").resolve(1, {"n": n, "commit_every": commit_every})
    ((laps,),) = [stage.streams for stage in program.stages]
    assert [lap.checksum for lap in laps] == [n * (n + 1) // 2] * 3 + [n]
    assert laps[0].count * steps(program.json)[0]["repeat"] == n


@settings(deadline=None, max_examples=60)
@given(scale=st.floats(0.001, 1000), constant=st.integers(1, 10**6))
def test_what_is_resolved_holds_no_expression_and_is_the_same_twice(scale: float, constant: int) -> None:
    workload = Workload.load("bulk_copy")
    program = workload.resolve(scale, {"rows": constant})
    assert program == workload.resolve(scale, {"rows": constant})
    table = json.loads(program.json)["tables"][0]
    assert table["rows"] == constant
    bounds = [column["generator"].get("high", 0) for column in table["columns"]]
    assert all(isinstance(bound, int) for bound in bounds)


def test_bahrain_s_checksums_are_the_paper_s() -> None:
    for n in (1_000, 3_000, 10_000, 30_000):
        ((laps,),) = [stage.streams for stage in Workload.load("bahrain").resolve(1, {"n": n}).stages]
        assert [lap.checksum for lap in laps] == [n * (n + 1) // 2, 405_450, 405_450, 100, n]


def test_constants_of_constants_follow() -> None:
    program = Workload.load("index_update").resolve(1, {"rows": 1_000_000})
    assert program.stages[0].streams[0][0].checksum == 77_746


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"m": 1}, "constants.m: .* has no such constant: it has n"),
        ({"n": 7}, "laps.0.count: 'n / 5' is 1.4"),
        ({"n": 0}, "n"),
        ({"n": float("nan")}, "constants.n"),
    ],
)
def test_constants_that_make_no_sense(tmp_path: Path, constants: dict[str, float], message: str) -> None:
    with pytest.raises(TierwiseError, match=message):
        Workload.load(write(tmp_path / "w", OBJECTS)).resolve(1, constants)


OPERATIONS = [
    (
        '{ insert = "pilot", with = { id = "i" } }',
        "INSERT INTO pilot (id, name, weight) VALUES (:i, :name, :weight)",
        "INSERT pilot (id, name, weight) VALUES (:i, :name, :weight)",
    ),
    (
        '{ get = "pilot", with = { id = "i" } }',
        "SELECT id, name, weight FROM pilot WHERE id = :i",
        "GET pilot (id) VALUES (:i)",
    ),
    (
        '{ find = "pilot", by = "name" }',
        "SELECT id, name, weight FROM pilot WHERE name = :name",
        "FIND pilot (name) VALUES (:name)",
    ),
    ('{ scan = "pilot" }', "SELECT id, name, weight FROM pilot", "SCAN pilot"),
    ('{ scan = "pilot", limit = 3 }', "SELECT id, name, weight FROM pilot LIMIT 3", "SCAN pilot LIMIT 3"),
    (
        '{ update = "pilot", set = ["name", "weight"], with = { id = "i" } }',
        "UPDATE pilot SET name = :name, weight = :weight WHERE id = :i",
        "UPDATE pilot (name, weight) VALUES (:name, :weight) KEY (:i)",
    ),
    (
        '{ delete = "pilot", with = { id = "i" } }',
        "DELETE FROM pilot WHERE id = :i",
        "DELETE pilot KEY (:i)",
    ),
]


@pytest.mark.parametrize(("operation", "sql", "canonical"), OPERATIONS)
def test_operations_on_objects(tmp_path: Path, operation: str, sql: str, canonical: str) -> None:
    # A second step, so that all parameters are used.
    step = f"[[transactions.write.steps]]\nobject = {operation}\n"
    toml = OBJECTS.replace("[[laps]]", f"{step}[[laps]]")
    workload = Workload.load(write(tmp_path / "w", toml))
    assert steps(workload.resolve(1).json)[1]["sql"] == [sql]
    assert steps(workload.resolve(1, dialect="objects").json)[1]["sql"] == [canonical]


def test_kinds_of_objects_become_tables(tmp_path: Path) -> None:
    workload = Workload.load(write(tmp_path / "w", OBJECTS))
    assert workload.resolve(1, dialect="objects").schema == [
        (
            Role.DATA,
            "OBJECT pilot KEY id FIELDS (id integer, name text, weight real) INDEXES (name)",
        )
    ]
    assert workload.resolve(1).schema == [
        (
            Role.DATA,
            "CREATE TABLE pilot (id bigint NOT NULL, name varchar(255) NOT NULL,"
            " weight double precision NOT NULL)",
        ),
        (Role.INDEX, "ALTER TABLE pilot ADD PRIMARY KEY (id)"),
        (Role.INDEX, "CREATE INDEX pilot_name ON pilot (name)"),
    ]


def test_sums_as_the_clients_read_them(tmp_path: Path) -> None:
    for written, read in {":i": {"parameter": "i"}, "weight": {"column": "weight"}, "rows": "rows"}.items():
        toml = OBJECTS.replace('sum = ":i"', f'sum = "{written}"')
        if written == "weight":  # an insert returns none
            rows = 'sql = "SELECT weight FROM pilot WHERE name = :name AND weight < :weight"'
            toml = toml.replace('object = { insert = "pilot", with = { id = "i" } }', rows)
        assert steps(Workload.load(write(tmp_path / "w", toml)).resolve(1).json)[0]["sum"] == read


def test_engines_of_objects_take_no_sql() -> None:
    with pytest.raises(TierwiseError, match=r"order_entry/workload\.toml: .*is SQL"):
        Workload.load("order_entry").resolve(1, dialect="objects")


def test_a_workload_like_another(tmp_path: Path) -> None:
    toml = """
        like = "index_update"
        summary = "mine"
        [constants]
        rows = 50
        [transactions.count]
        autocommit = true
        [[transactions.count.steps]]
        sql = "SELECT count(*) FROM t"
    """
    program = Workload.load(write(tmp_path / "w", toml)).resolve(1)
    assert program.stages == []
    assert json.loads(program.json)["tables"][0]["rows"] == 50
    assert json.loads(program.json)["parameters"] == []
    assert [role for role, _ in program.after_load] == [Role.INDEX, Role.DATA]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('key = "id"', 'key = "no"', "objects.pilot names the unknown field 'no'"),
        ('["name"]', '["no"]', "objects.pilot names the unknown field 'no'"),
        ('"real"', '"money"', "objects.pilot.fields.weight"),
        ('insert = "pilot"', 'insert = "car"', "steps.0.object: names the unknown kind 'car'"),
        ('insert = "pilot",', "", "steps.0.object: does not name one operation"),
        ('insert = "pilot"', 'insert = "pilot", get = "pilot"', "steps.0.object: does not name one"),
        ('insert = "pilot"', 'insert = "pilot", by = "name"', "steps.0.object: by"),
        ('insert = "pilot"', 'insert = "pilot", set = ["name"]', "steps.0.object: set"),
        ('insert = "pilot"', 'insert = "pilot", limit = 2', "steps.0.object: limit"),
        ('insert = "pilot"', 'find = "pilot", by = "weight"', "steps.0.object: by: 'weight' is not indexed"),
        ('insert = "pilot"', 'update = "pilot", set = ["no"]', "names the unknown field 'no'"),
        ('insert = "pilot"', 'update = "pilot", set = ["id"]', "set: 'id' is the key"),
        ("with = { id = ", "with = { no = ", "steps.0.object: names the unknown field 'no'"),
        ("object = {", 'sql = "SELECT 1"\nobject = {', "workload.toml: transactions.write.steps.0"),
        ('sum = ":i"', 'sum = ":no"', "steps.0.sum names the unknown parameter 'no'"),
        ('sum = ":i"', 'sum = "a b"', "steps.0.sum"),
        ('sum = ":i"\n', "", "laps.0 (write): checksum, but no step of write has a sum"),
        ('name = "write"\n', 'name = "read"\n', "laps.0 (read) runs the unknown transaction 'read'"),
        ('name = "write"\n', 'name = "w r"\n', "laps.0.name"),
        ("count = ", "cuont = ", "laps.0.cuont: no such field; did you mean count?"),
        ('"n / 5"', '"n / 5 - 2"', "laps.0.count is 0"),
        ('"n / 5"', '"m"', "laps.0.count: 'm' names the unknown 'm'"),
        ('count = "n / 5"', 'before = ["warm"]', "laps.0.before.0"),
        ("[[laps]]", '[[laps]]\nname = "write"\n[[laps]]', "laps.1 (write): the name is taken"),
        (
            "[[laps]]",
            "[[transactions.x.steps]]\nsql = 'SELECT 1'\n[[laps]]",
            "transactions.x is run by no lap",
        ),
        ('of = "i"', 'of = "no"', "parameters.name is made of the unknown 'no'"),
        ('of = "i"', 'of = "name"', "parameters.name is made of itself"),
        ('kind = "uniform",', 'kind = "permutation", of = "name",', "which is no whole number"),
        ('"uniform", low = 1, high = "n"', '"expression", value = "i **"', "weight.expression.value"),
        ('"uniform", low = 1, high = "n"', '"expression", value = "no + 1"', "made of the unknown 'no'"),
        ('summary = "test"', 'summary = "test"\nlike = "no"', "like: 'no'"),
        ('summary = "test"', 'summary = "test"\nprogram = "no"', "program"),
        ('summary = "test"', 'summary = "test"\npgbench = ["a.sql"]', "both pgbench and parameters"),
        ('summary = "test"', 'summary = "test"\npgbench = "a.sql"', "pgbench"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in OBJECTS
    folder = write(tmp_path / "w", OBJECTS.replace(old, new, 1), a="SELECT 1;")
    with pytest.raises(TierwiseError) as raised:
        Workload.load(folder)
    assert message in raised.value.message
    assert "workload.toml" in raised.value.message
    assert "\n" not in str(raised.value)


def test_objects_leave_no_room_for_a_schema(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"schema\.sql: the workload declares objects"):
        Workload.load(write(tmp_path / "w", OBJECTS, schema="-- role: data\nCREATE TABLE t (id int);"))


PIECES = [
    "",
    '"',
    "1",
    "-1",
    "1e999",
    "[",
    "]",
    "{}",
    "true",
    "''",
    "9" * 20,
    "nan",
    "[[laps]]",
    "\n",
    "**",
    "scale",
]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_whatever_is_written_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    words = list(re.finditer(r'"[^"]*"|\w+|[=\[\]{}]', OBJECTS))
    word = data.draw(st.sampled_from(words))
    piece = data.draw(st.sampled_from([*PIECES, *(other.group() for other in words)]))
    toml = OBJECTS[: word.start()] + piece + OBJECTS[word.end() :]
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TierwiseError):
        workload = Workload.load(write(Path(folder), toml))
        for language in ("postgres", "sqlite", "objects"):
            assert workload.resolve(2.5, dialect=language).name == Path(folder).name
