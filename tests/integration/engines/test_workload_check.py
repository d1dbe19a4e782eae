"""Workloads tried out on real engines, from the command line and from the API."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from support.engine_contract import open_directory
from support.paths import ROOT
from tierwise.cli import app
from tierwise.cli.schema import SCHEMAS
from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies.runner import workload_check
from tierwise.lab.workloads import Workload
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.result_schema import CheckOutcome

EXAMPLES = ROOT / "examples"


def invoke(*arguments: str) -> list[str]:
    """Lines of a command that succeeds."""
    result = CliRunner().invoke(app, ["workload", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def refusal(*arguments: str) -> tuple[str, str]:
    """Output of a command that fails as it should, and its one line of error."""
    result = CliRunner().invoke(app, ["workload", *arguments])
    assert isinstance(result.exception, TierwiseError), result.output
    assert "\n" not in str(result.exception)
    return result.stdout, str(result.exception)


def problems(output: str) -> list[str]:
    """Problems of the failed checks, of JSON that is valid by its schema."""
    content = json.loads(output)
    Draft202012Validator(SCHEMAS["workload-check"]()).validate(content)
    return [problems["problem"] for problems in content["checks"] if problems["problem"]]


def test_a_new_workload_runs_at_once(tmp_path: Path) -> None:
    folder = str(tmp_path / "mine")
    lines = invoke("new", folder)
    assert [Path(line.removeprefix("wrote ")).name for line in lines[:3]] == [
        "workload.toml",
        "schema.sql",
        "after_load.sql",
    ]
    assert f"tierwise workload check {folder}" in (tmp_path / "mine" / "workload.toml").read_text("utf-8")
    checks = json.loads("".join(invoke("check", folder, "--format", "json")))["checks"]
    assert not any(problems["problem"] for problems in checks), checks
    last = ("transaction pay", "transaction look")
    assert [problems["name"] for problems in checks] == ["resolve", "schema", "load", "after_load", *last]
    assert "is there already" in refusal("new", folder)[1]


def test_what_fails_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    invoke("new", str(folder))
    toml = folder / "workload.toml"
    toml.write_text(toml.read_text("utf-8").replace("SELECT a_owner", "SELECT a_ower"), "utf-8")
    output, error = refusal("check", str(folder), "--engine", "sqlite", "--format", "json")
    assert "workload.toml: " in error
    assert "a_ower" in problems(output)[0]
    assert "FAILED" in refusal("check", str(folder), "--engine", "sqlite")[0]


def test_a_schema_that_fails_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    invoke("new", str(folder))
    schema = folder / "schema.sql"
    schema.write_text(schema.read_text("utf-8").replace("a_owner varchar(30)", "a_id varchar(30)"), "utf-8")
    output, _ = refusal("check", str(folder), "--engine", "sqlite", "--format", "json")
    (failed,) = problems(output)
    assert "schema.sql: CREATE TABLE account" in failed
    assert "duplicate column" in failed


@pytest.mark.parametrize("engine", ["postgres", "mariadb", "sqlite", "duckdb"])
def test_a_check_ends_before_it_fills_the_disk(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    invoke("new", str(folder))
    toml = folder / "workload.toml"
    toml.write_text(toml.read_text("utf-8").replace('"10000 * scale"', '"1e10 * scale"'), "utf-8")
    began = shutil.disk_usage(tmp_path).free
    monkeypatch.setattr(workload_check, "_LEAVE_SHARE", 1.0)
    monkeypatch.setattr(workload_check, "_LEAVE_BYTES", began - (200 << 20))
    with open_directory() as place:
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        output, _ = refusal("check", str(folder), "--engine", engine, "--scale", "1", "--format", "json")
        (failed,) = problems(output)
        assert re.match(r"stopped: less than .* are left: load less with --scale", failed), failed
        assert not list(place.glob("tierwise-check-*"))


def test_duckdb_names_the_column_that_a_table_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    invoke("new", str(folder))
    toml = folder / "workload.toml"
    toml.write_text(toml.read_text("utf-8").replace("a_owner = {", "a_ower = {"), "utf-8")
    output, _ = refusal("check", str(folder), "--engine", "duckdb", "--format", "json")
    assert "table account: it has no column a_ower" in problems(output)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "no_such"], "unknown workload 'no_such'"),
        (["check", "order_entry", "--engine", "oracle"], "engine 'oracle' is unknown"),
        (["check", "order_entry", "--engine", "rocksdb"], "is SQL"),
        (["check", "order_entry", "--scale", "0"], "scale 0.0 is not above 0"),
        (["new", "/proc/no/such"], "/proc/no/such"),
    ],
)
def test_bad_input_gives_one_line(arguments: list[str], message: str) -> None:
    assert message in refusal(*arguments)[1]


@pytest.fixture(scope="module")
def server() -> Iterator[Engine]:
    with (
        ledger.make_directory("test-workloads", mode=0o711) as place,
        engines.create_engine("postgres") as engine,
    ):
        engine.init({Role.SYSTEM: place})
        engine.start()
        yield engine


def try_on(engine: Engine, name: str) -> list[CheckOutcome]:
    """Try a workload out, then drop its tables."""
    workload = Workload.load(name)
    _, program = workload_check.least_workable_scale(workload, engine.dialect)
    tried = list(workload_check.check_on_engine(engine, workload, program))
    tables = [match[1] for _, sql in program.schema if (match := re.match(r"CREATE TABLE (\w+)", sql))]
    engine.execute_schema([(Role.DATA, f"DROP TABLE {', '.join(tables)}")])
    assert [check.problem for check in tried] == [None] * len(tried)
    return tried


def checksums(tried: list[CheckOutcome]) -> dict[str, int]:
    """By lap."""
    laps = [check for check in tried if check.name.startswith("lap ")]
    return {lap.name[4:]: int(lap.note.rpartition("checksum ")[2]) for lap in laps}


@pytest.mark.parametrize("name", ["ledger", "pgbench"])
def test_the_examples_run(server: Engine, name: str) -> None:
    assert len(try_on(server, str(EXAMPLES / name))) >= 5


@pytest.mark.parametrize("name", ["crud", "simple_objects", "spill_join", "bulk_copy", "scan_seek"])
def test_the_papers_workloads_run(server: Engine, name: str) -> None:
    assert checksums(try_on(server, name))


def test_index_update_changes_the_paper_s_share_of_the_rows(server: Engine) -> None:
    assert checksums(try_on(server, "index_update")) == {"update": 8}


PAPERS_CHECKSUMS = {
    "bahrain": {
        "write": 500_500,
        "query_indexed_string": 405_450,
        "query_indexed_int": 405_450,
        "update": 100,
        "delete": 1000,
    },
    "melbourne": {"write": 4_501_500, "read": 4_501_500, "read_hot": 4_501_500, "delete": 3000},
}


@pytest.mark.parametrize("name", PAPERS_CHECKSUMS)
def test_poleposition_s_checksums(server: Engine, name: str) -> None:
    assert checksums(try_on(server, name)) == PAPERS_CHECKSUMS[name]


@pytest.mark.parametrize(
    ("name", "engine"),
    [("bahrain", "rocksdb"), ("bahrain", "sqlite"), ("melbourne", "mariadb"), ("crud", "duckdb")],
)
def test_checksums_on_other_engines(name: str, engine: str) -> None:
    try:
        engines.create_engine(engine)
    except TierwiseError as error:
        pytest.skip(str(error))
    tried = list(workload_check.check_on_new_database(Workload.load(name), engine))
    each_once = dict.fromkeys(["create", "read", "update", "delete"], 20)
    assert checksums(tried) == PAPERS_CHECKSUMS.get(name, each_once)
