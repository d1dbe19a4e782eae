"""Runs of laps on a real SQLite: each timed and counted by itself, checked, capped; streams side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from support.results_factory import Make
from support.results_factory import run as a_run
from support.tiny_study import tiny_study
from tierwise.lab import engines
from tierwise.lab.engines import Engine
from tierwise.lab.studies.runner.database_run import execute_run
from tierwise.lab.studies.runner.lap_run import (
    LapRunner,
    MeasuredLaps,
    RunContext,
    program_with_tables,
    tables_filled_by_laps,
)
from tierwise.lab.studies.runner.run_record import record_with_laps
from tierwise.lab.studies.runner.run_storage import open_storage
from tierwise.lab.studies.study import plan_runs
from tierwise.lab.workloads.program import Lap, Program, Stage
from tierwise.model.placement import Role

pytestmark = pytest.mark.usefixtures("run_dir")

TABLE = {"kind": "counter", "start": 1, "divide": 1, "modulo": None}


def transaction(name: str, sql: str, repeat: int = 1, **more: object) -> dict[str, object]:
    step = {"repeat": repeat, "draw": [], "sql": [sql], **more}
    return {"name": name, "weight": 1.0, "autocommit": True, "steps": [step]}


JSON = {
    "name": "p",
    "think_ms": 0.0,
    "parameters": [],
    "tables": [
        {"name": name, "rows": 100, "columns": [{"name": "a", "generator": TABLE}]} for name in ("t", "u")
    ],
    "transactions": [
        transaction("add", "SELECT a FROM t", sum={"column": "a"}),
        transaction("slow", "SELECT count(*) FROM t, t AS x, t AS y, t AS z, t AS w"),
    ],
}
SCHEMA = [(Role.DATA, "CREATE TABLE t (a integer)"), (Role.DATA, "CREATE TABLE u (a integer)")]
INDEX = (Role.DATA, "CREATE INDEX u_a ON u (a)")

_PREPARED = a_run(Make("all-hdd", 1.0))
Run = Callable[..., MeasuredLaps]


@pytest.fixture
def run(own: Path) -> Run:
    """Runs streams of laps on a new database."""

    def run_laps(*streams: list[Lap], cap_s: float | None = None) -> MeasuredLaps:
        chosen = tiny_study(own, "sqlite", "crud")
        chosen = chosen.model_copy(update={"cap_s": cap_s})
        (plan,) = plan_runs(chosen, 1)
        program = Program("p", json.dumps(JSON), SCHEMA, [], [Stage(list(streams))])
        with ExitStack() as undo:
            engine = engines.create_engine("sqlite")
            storage = open_storage(chosen, plan, engine.roles, undo)
            undo.enter_context(engine)
            load(engine, program, storage.places)
            return LapRunner(RunContext(chosen, plan, engine, storage, program, lambda _: None)).run()

    return run_laps


def load(engine: Engine, program: Program, places: dict[Role, Path]) -> None:
    engine.init(places)
    engine.start()
    engine.execute_schema(program.schema)
    left_out = tables_filled_by_laps(program)
    engine.load_tables(program_with_tables(program.json, lambda name: name not in left_out), 1)


def test_laps_run_in_turn_and_are_counted_one_by_one(run: Run) -> None:
    laps = [
        Lap("load u", load="u", capped=False),
        Lap("index u", statement=INDEX),
        Lap("add", transaction="add", count=3, checksum=3 * 5050, before=frozenset({"cold"})),
        Lap("again", transaction="add", before=frozenset({"reconnect", "checkpoint"}), timed=False),
    ]
    measured = run(laps)
    assert [lap.name for lap in measured.laps] == ["load u", "index u", "add", "again"]
    assert [lap.status for lap in measured.laps] == ["ok"] * 4, measured.problems
    loaded, index, added, again = measured.laps
    assert loaded.rows == 100 and loaded.counters is not None and index.elapsed_s > 0
    assert (added.transactions, added.checksum, added.cold) == (3, 15150, True)
    assert added.resident_share is not None and added.latency is not None and added.latency.count == 3
    assert not again.timed and again.checksum == 5050
    assert len(measured.windows) == 3
    starts = [lap.started_s or 0 for lap in measured.laps]
    assert starts == sorted(starts)


def test_a_wrong_checksum_ends_the_run_and_names_the_lap(run: Run) -> None:
    measured = run([Lap("sum", transaction="add", checksum=1), Lap("never", transaction="add")])
    assert measured.problems == ["lap sum: checksum 5050 in place of 1"]
    assert [lap.name for lap in measured.laps] == ["sum"]
    assert record_with_laps(_PREPARED, measured, {}).status == "failed"


def test_a_statement_that_fails_ends_the_run_and_names_the_lap(run: Run) -> None:
    measured = run([Lap("load v", load="u"), Lap("bad", statement=(Role.DATA, "CREATE TABLE t (a integer)"))])
    assert [lap.status for lap in measured.laps] == ["ok", "failed"]
    assert measured.problems[0].startswith("lap bad: ")


def test_a_capped_lap_is_marked_and_the_run_goes_on(run: Run) -> None:
    measured = run([Lap("slow", transaction="slow"), Lap("add", transaction="add")], cap_s=0.3)
    slow, added = measured.laps
    assert slow.status == "capped" and 0.2 < slow.elapsed_s < 20
    assert added.status == "ok"
    record = record_with_laps(_PREPARED, measured, {})
    assert record.status in ("ok", "invalid")
    assert record.elapsed_s is None and record.rate_per_s is None
    assert record.elapsed_at_least_s == pytest.approx(slow.elapsed_s + added.elapsed_s)


def test_streams_run_side_by_side_and_are_counted_together(run: Run) -> None:
    lap = Lap("add", transaction="add", count=2)
    measured = run([lap, replace(lap, name="more")], [replace(lap, name="other", checksum=10100)])
    assert {(lap.name, lap.stream, lap.status) for lap in measured.laps} == {
        ("add", 0, "ok"),
        ("more", 0, "ok"),
        ("other", 1, "ok"),
    }
    assert all(lap.counters is None for lap in measured.laps)
    (window,) = measured.windows
    assert window.elapsed_s >= max(lap.elapsed_s for lap in measured.laps)


def test_a_study_of_laps_gives_a_whole_record(own: Path) -> None:
    chosen = tiny_study(own, "sqlite", "melbourne")
    chosen = chosen.model_copy(update={"constants": {"n": 2000}})
    (plan,) = plan_runs(chosen, 1)
    result = execute_run(chosen, plan, 1, lambda _: None)
    assert result.status == "ok", result.problems
    checksums = {lap.name: lap.checksum for lap in result.laps}
    assert checksums == {"write": 2001000, "read": 2001000, "read_hot": 2001000, "delete": 2000}
    assert result.elapsed_s == pytest.approx(sum(lap.elapsed_s for lap in result.laps))
    assert result.workload.constants == {"n": 2000}
    assert result.proof and not [stray for role_proof in result.proof.values() for stray in role_proof.strays]
    assert result.residency and result.counters
