"""pgbench's scripts: what they become, and what is refused with file and line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tierwise.lab.workloads import Workload
from tierwise.model.errors import TierwiseError


def load(tmp_path: Path, script: str, name: str = "mine.sql") -> dict[str, Any]:
    (tmp_path / name).write_text(script, "utf-8")
    program: dict[str, Any] = json.loads(Workload.load(str(tmp_path / name)).resolve(2).json)
    return program


def parameters(program: dict[str, Any]) -> dict[str, Any]:
    return {parameter["name"]: parameter["generator"] for parameter in program["parameters"]}


def test_the_built_in_script() -> None:
    program = json.loads(Workload.load("tpcb").resolve(2).json)
    assert parameters(program) == {
        "aid": {"kind": "uniform", "low": 1, "high": 200_000},
        "bid": {"kind": "uniform", "low": 1, "high": 2},
        "tid": {"kind": "uniform", "low": 1, "high": 20},
        "delta": {"kind": "uniform", "low": -5000, "high": 5000},
    }
    (transaction,) = program["transactions"]
    assert transaction["autocommit"] is False
    assert len(transaction["steps"][0]["sql"]) == 5
    assert {table["name"]: table["rows"] for table in program["tables"]} == {
        "pgbench_branches": 2,
        "pgbench_tellers": 20,
        "pgbench_accounts": 200_000,
    }


@pytest.mark.parametrize(
    ("expression", "generator"),
    [
        ("random(1, 10)", {"kind": "uniform", "low": 1, "high": 10}),
        ("random(-3, 5 * (:scale + 1))", {"kind": "uniform", "low": -3, "high": 15}),
        ("random_zipfian(1, 9, 1.2)", {"kind": "zipf", "low": 1, "high": 9, "exponent": 1.2}),
        ("random_gaussian(1, 9, 3)", {"kind": "gaussian", "low": 1, "high": 9, "parameter": 3.0}),
        ("random_exponential(1, 9, 2.5)", {"kind": "exponential", "low": 1, "high": 9, "parameter": 2.5}),
        ("5", {"kind": "expression", "postfix": [{"number": 5}]}),
        (":client_id + 1", {"kind": "expression", "postfix": [{"value": "client_id"}, {"number": 1}, "add"]}),
        (
            "least(abs(-7), mod(9, 5), 3)",
            {
                "kind": "expression",
                "postfix": [
                    *({"number": 7}, "negate", "absolute"),
                    *({"number": 9}, {"number": 5}, "remainder", "least"),
                    *({"number": 3}, "least"),
                ],
            },
        ),
    ],
)
def test_expressions(tmp_path: Path, expression: str, generator: dict[str, Any]) -> None:
    program = load(tmp_path, f"\\set x {expression}\nSELECT :x;\n")
    assert parameters(program)["x"] == generator


def test_draws_within_an_expression_are_parameters_of_their_own(tmp_path: Path) -> None:
    script = "\\set two random(1, 6) + \\\n  random(1, 6)\nSELECT :two;\n"
    drawn = {"kind": "uniform", "low": 1, "high": 6}
    sampled = parameters(load(tmp_path, script))
    assert sampled.pop("two")["postfix"] == [{"value": "two_draw"}, {"value": "two_draw_2"}, "add"]
    assert sampled == {"two_draw": drawn, "two_draw_2": drawn}


def test_a_variable_that_is_set_again_is_another_one(tmp_path: Path) -> None:
    script = "\\set from random(1, 5)\nSELECT :from, ':other';\n\\set from :from + 1\nSELECT :from;\n"
    program = load(tmp_path, script)
    assert program["transactions"][0]["steps"][0]["sql"] == ["SELECT :from, ':other'", "SELECT :from_2"]
    assert parameters(program)["from_2"]["postfix"][0] == {"value": "from"}
    assert program["transactions"][0]["autocommit"] is True


def test_a_folder_of_scripts_with_a_schema_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("-- role: data\nCREATE TABLE t (id int);", "utf-8")
    (tmp_path / "a.sql").write_text("\\set x random(1, 5)\nSELECT :x;\n\\sleep 20 ms\n", "utf-8")
    (tmp_path / "b.pgbench").write_text(
        "\\set x random(1, 6)\nBEGIN;\nSELECT :x; END;\n\\sleep 20ms\n", "utf-8"
    )
    with pytest.raises(TierwiseError, match=r"b\.pgbench:4: \\sleep 20ms"):
        Workload.load(str(tmp_path))
    (tmp_path / "b.pgbench").write_text(
        "\\set x random(1, 6)\nBEGIN;\nSELECT :x; END;\n\\sleep 20 ms", "utf-8"
    )
    program = Workload.load(str(tmp_path)).resolve(1)
    content = json.loads(program.json)
    assert content["think_ms"] == 20
    assert content["tables"] == []
    assert [sql for _, sql in program.schema] == ["CREATE TABLE t (id int)"]
    assert {
        transaction["name"]: transaction["steps"][0]["sql"] for transaction in content["transactions"]
    } == {
        "a": ["SELECT :x"],
        "b": ["SELECT :x_2"],
    }


def test_weights_and_constants(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT :rows;", "utf-8")
    (tmp_path / "b.sql").write_text("SELECT 1;", "utf-8")
    toml = 'summary = "s"\nlike = "tpcb"\npgbench = ["a.sql@3", "b.sql"]\n[constants]\nrows = 7\n'
    (tmp_path / "workload.toml").write_text(toml, "utf-8")
    program = json.loads(Workload.load(str(tmp_path)).resolve(1).json)
    assert [transaction["weight"] for transaction in program["transactions"]] == [3, 1]
    assert parameters(program) == {"rows": {"kind": "uniform", "low": 7, "high": 7}}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("\\if :x\nSELECT 1;\n\\endif\n", r"mine\.sql:1: \\if"),
        ("SELECT 1 \\gset\n", r"mine\.sql:1: .*\\gset"),
        ("SELECT 1;\n\\set x sqrt(2)\n", r"mine\.sql:2: \\set x: the function sqrt"),
        ("\\set x random(1, :y)\nSELECT :x;", r"mine\.sql:1: \\set x: the bound :y"),
        ("\\set x :y + 1\nSELECT :x;", r"mine\.sql:1: \\set x: the unknown variable :y"),
        ("\\set x 1.5\nSELECT :x;", r"mine\.sql:1: \\set x: 1\.5 is no arithmetic"),
        ("\\set x 1 <> 2\nSELECT :x;", r"mine\.sql:1: \\set x: '1 <> 2'"),
        ("\\set x CASE WHEN 1 THEN 2 END\nSELECT :x;", r"mine\.sql:1: \\set x: "),
        ("\\set x random(1)\nSELECT :x;", r"mine\.sql:1: \\set x: random takes 2 values"),
        ("\\set x random_zipfian(1, 5, :y)\nSELECT :x;", r"mine\.sql:1: \\set x: :y, which is not a number"),
        ("\\set 1x 5\nSELECT 1;", r"mine\.sql:1: \\set 1x: '1x' is no name"),
        ("\\setrandom x 1 5\nSELECT 1;", r"mine\.sql:1: \\setrandom"),
        ("\\sleep 5 ms\nSELECT 1;", r"mine\.sql:2: \\sleep before a statement"),
        ("SELECT 1;\n\\sleep :x ms", r"mine\.sql:2: \\sleep :x ms"),
        ("SELECT 1\n\\sleep 1", r"mine\.sql:1: a statement without its ;"),
        ("SELECT 1;\n\nSELECT :x;", r"mine\.sql:3: the unknown variable :x"),
        ("SELECT 1;\nBEGIN;\nSELECT 2;\nEND;", r"mine\.sql:2: BEGIN here"),
        ("BEGIN;\nSELECT 1;\nROLLBACK;", r"mine\.sql:1: BEGIN here"),
        ("BEGIN;\nSAVEPOINT a;\nEND;", r"mine\.sql:2: SAVEPOINT here"),
        ("BEGIN;\nEND;", r"mine\.sql:1: an empty transaction"),
        ("-- nothing\n", r"mine\.sql holds no statement"),
        ("\\set n 1\nSELECT 'user :n';", r"mine\.sql:2: the variable :n inside quotes"),
        ("\\set n 1\nSELECT $$:n$$;", r"mine\.sql:2: the variable :n inside quotes"),
    ],
)
def test_what_no_workload_can_say_is_refused(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(TierwiseError, match=message) as raised:
        load(tmp_path, script)
    assert "\n" not in str(raised.value)


GSET = """\\set aid random(1, 100000 * :scale)
-- a comment

SELECT abalance
FROM pgbench_accounts
WHERE aid = :aid \\gset

\\if :abalance > 0
SELECT :abalance;
\\else
SELECT 2;
\\endif
"""


def test_every_finding_has_its_own_line_and_one_way_out(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError) as raised:
        load(tmp_path, GSET)
    problems = r"mine\.sql:6: \\gset; line 8: \\if; line 10: \\else; line 12: \\endif: "
    assert re.search(problems, str(raised.value))
    assert "leave it out" not in str(raised.value) and "tierwise record --pid" in str(raised.value)


@pytest.mark.parametrize(
    "block",
    [
        "DO $$\nDECLARE\n  i int;\nBEGIN\n  i := 1;\nEND;\n$$",
        "DO $a$ BEGIN\n PERFORM '$$;';\nEND; $a$",
        "SELECT E'it\\'s; \\\\', 1",
        'SELECT 1 AS "a;\nb"',
        "SELECT 'two\n;lines', /* ;\n' */ 2",
        "SELECT 7 / 2 - 1 -- it's;\n+ 1",
    ],
)
def test_a_semicolon_in_quotes_or_comments_ends_no_statement(tmp_path: Path, block: str) -> None:
    program = load(tmp_path, f"{block};\nSELECT 2;\n")
    assert program["transactions"][0]["steps"][0]["sql"] == [block, "SELECT 2"]


SCRIPT = "\\set aid random(1, 10)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


@pytest.mark.parametrize("name", ["look.bench", "look.SQL", "look.txt", "look"])
def test_a_script_with_another_ending_is_not_left_out_in_silence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SCRIPT, "utf-8")
    (tmp_path / "b.sql").write_text("SELECT 1;\n", "utf-8")
    with pytest.raises(TierwiseError, match=rf"{name}: .*\.sql.*\.pgbench"):
        Workload.load(str(tmp_path))
    (tmp_path / "workload.toml").write_text('summary = "s"\nlike = "tpcb"\npgbench = ["b.sql"]\n', "utf-8")
    assert Workload.load(str(tmp_path))


@pytest.mark.parametrize(
    "helper",
    [
        "CREATE INDEX IF NOT EXISTS own_i ON pgbench_accounts (bid);",
        "-- once\nDROP TABLE IF EXISTS t;",
        "/* a */ ALTER TABLE t ADD COLUMN a int;",
        "VACUUM ANALYZE;",
        "TRUNCATE pgbench_history;",
    ],
)
def test_a_helper_in_a_folder_never_becomes_the_workload(tmp_path: Path, helper: str) -> None:
    (tmp_path / "a.sql").write_text(SCRIPT, "utf-8")
    (tmp_path / "extra.sql").write_text(helper, "utf-8")
    with pytest.raises(TierwiseError, match=r"extra\.sql: .*after_load\.sql"):
        Workload.load(str(tmp_path))


def test_other_files_in_a_folder_of_scripts_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TEMP TABLE x (a int); SELECT 1;", "utf-8")
    (tmp_path / "README").write_text("Select the script with -f.", "utf-8")
    (tmp_path / "run.sh").write_text("#!/bin/sh\npsql -c 'SELECT 1;'\n", "utf-8")
    (tmp_path / "data.csv").write_text("1,2\n", "utf-8")
    (tmp_path / "blob").write_bytes(b"\xff\x00")
    assert Workload.load(str(tmp_path))
