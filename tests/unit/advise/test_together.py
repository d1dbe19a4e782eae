"""Roles that an engine keeps in one directory are one choice: in rankings, advice, the page and the steps."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.fake_replay import GB, FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_databases import RecordingLocation
from tierwise.lab import engines
from tierwise.lab.engines import Engine
from tierwise.lab.engines.duckdb.engine import DuckDbEngine
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.engines.rocksdb.engine import RocksEngine
from tierwise.lab.engines.sqlite.engine import SqliteEngine
from tierwise.model.input_files import DATA
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Predictor, Scenario, rank_placements
from tierwise.predict.inseparable_roles import (
    engine_moves,
    inseparable_roles_of,
    parted_role_groups,
    role_units,
)
from tierwise.report.advice import advice_page, survey_advice
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.move_steps import move_guide
from tierwise.report.recording.advice_report import further_sentences
from tierwise.report.recording.decision_words import decision_headline

DEVICES = ["nvme-dc", "gp3"]
CASES = {
    "sqlite": (
        {"log": GB, "data": 40 * GB, "doublewrite": 0, "temp": GB},
        {Role.LOG, Role.DATA, Role.DOUBLEWRITE},
    ),
    "duckdb": ({"log": GB, "data": 40 * GB, "temp": GB}, {Role.LOG, Role.DATA}),
    "mariadb": ({"log": GB, "data": 40 * GB, "index": 10 * GB}, {Role.DATA, Role.INDEX}),
    "rocksdb": ({"log": GB, "data": 40 * GB, "archive": GB}, {Role.LOG, Role.ARCHIVE}),
}
"""Recorded files of an engine, and those of them that move as one."""
cases = pytest.mark.parametrize("engine", CASES)


def predictor(engine: str) -> Predictor:
    fake = FakeReplay(footprints=CASES[engine][0])
    return fake_predictor(fake, engine=engine)


def one(placement: dict[Role, str], roles: set[Role]) -> bool:
    return len({placement.get(role, RECORDED) for role in roles}) == 1


@cases
def test_no_placement_of_a_ranking_or_an_advice_parts_them(engine: str) -> None:
    of, roles = predictor(engine), CASES[engine][1]
    ranking = rank_placements(of, [RECORDED, *DEVICES])
    assert ranking.tried > 1 and all(one(each.placement, roles) for each in ranking.ranked)
    advice = advise(of, AdviceOptions(DEVICES))
    answers = [
        advice.decision.option.prediction,
        *(move.prediction for move in (*advice.moves, *advice.ladder)),
    ]
    for answer in answers:
        placed = {Role(role): device for role, device in answer.scenario.placement.items()}
        assert one(placed, roles), placed
        assert not any("no setting makes this placement" in warning for warning in answer.warnings)
    moved = next(move for move in advice.moves if move.role in roles)
    assert {moved.role, *moved.along} == roles & advice.run.footprints.keys()


@cases
def test_a_search_of_too_many_placements_parts_none(engine: str) -> None:
    ranking = rank_placements(predictor(engine), [RECORDED, *DEVICES], most=2)
    assert not ranking.complete and all(one(each.placement, CASES[engine][1]) for each in ranking.ranked)


@cases
def test_text_json_page_and_explorer_say_that_and_why(engine: str) -> None:
    of, roles = predictor(engine), CASES[engine][1]
    advice = advise(of, AdviceOptions(DEVICES))
    because = engine_moves(engine)["together"]
    assert because in " ".join(further_sentences(advice))
    (group,) = advice.model_dump(mode="json")["decision"]["together"]
    assert set(group["roles"]) == {role.value for role in roles} and group["because"] == because
    made = survey_advice(of, advice, PaymentTerms(), Path("shop"))
    data = advice_page_data(made)
    (card,) = [card for card in data["roles"] if len(card["roles"]) > 1]
    assert set(card["roles"]) == {role.value for role in roles} and card["because"] == because
    assert len(data["figures"]["rate"]) == len(data["devices"]) ** len(data["roles"])
    assert because in advice_page(made)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_headline_moves_the_database_with_its_log(engine: str) -> None:
    text = decision_headline(advise(predictor(engine), AdviceOptions(["nvme-dc"])))
    assert text.startswith("Move ") and "the data" in text and "the log" in text and " together: " in text


@cases
def test_a_placement_that_parts_them_is_answered_and_warned_of(engine: str) -> None:
    first, *_ = sorted(CASES[engine][1])
    (answer,) = predictor(engine).predict([Scenario(placement={first.value: "nvme-dc"})])
    assert answer.rate_per_s
    assert engine_moves(engine)["together"] in answer.warnings[0]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_steps_name_what_moves_along(engine: str) -> None:
    instructions = move_guide(engine, {Role.DATA: "ssd-nvme-dc", Role.LOG: "ssd-nvme-dc"})
    assert [step.role for step in instructions.steps] == ["data"]
    assert (
        instructions.along == [f"log moves with the data: {engine_moves(engine)['together']}"]
        and not instructions.without
    )
    apart = move_guide(engine, {Role.DATA: "ssd-nvme-dc", Role.LOG: "ram"})
    assert apart.along == [] and apart.without[0].startswith("log: it moves with the data")


def test_a_fleet_keeps_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor("sqlite"))
    options = database_options(
        DatabaseOptionsTask(
            RecordingLocation("toy", "toy"), ("ssd-nvme-dc", "volume-aws-gp3"), PaymentTerms()
        )
    )
    assert isinstance(options, DatabaseOptions) and len(options.options) > 1
    assert all(one(option.placement, CASES["sqlite"][1]) for option in options.options)


def test_units_are_of_recorded_roles_and_an_unknown_engine_has_single_ones() -> None:
    assert role_units("sqlite", [Role.LOG, Role.DATA, Role.TEMP]) == [(Role.DATA, Role.LOG), (Role.TEMP,)]
    assert parted_role_groups(inseparable_roles_of("sqlite", [Role.LOG, Role.DATA]), {Role.LOG: "ram"})
    assert role_units("oracle", [Role.LOG, Role.DATA]) == [(Role.LOG,), (Role.DATA,)]


def rules(engine: str) -> dict[str, Any]:
    return tomllib.loads((DATA / "rules" / f"{engine}.toml").read_text("utf-8"))


@pytest.mark.parametrize("engine", sorted(engines.engine_names()))
def test_every_role_that_a_recording_can_show_moves_by_steps_with_another_or_with_a_reason(
    engine: str,
) -> None:
    if not (DATA / "rules" / f"{engine}.toml").exists():
        pytest.skip("nothing is recorded of it")
    known = engine_moves(engine)
    for role in {rule["role"] for rule in rules(engine)["file"] if rule.get("role")}:
        move = known[role]
        assert "there" in move or "reason" in move or move["with"] in known, (engine, role)


@pytest.mark.parametrize(
    "engine",
    [DuckDbEngine, MariadbEngine, PostgresEngine, RocksEngine, SqliteEngine],
    ids=lambda case: case.__name__,
)
def test_files_that_the_lab_finds_inside_another_role_move_with_it(engine: type[Engine]) -> None:
    name = engine.__module__.split(".")[-2]
    shown = {rule["role"] for rule in rules(name)["file"] if rule.get("role")}
    for role, holder in engine.inside.items():
        if role.value in shown:
            assert engine_moves(name)[role.value]["with"] == holder.value, (name, role)


def test_sqlite_s_files_are_placed_by_tierwise_s_own_vfs_alone() -> None:
    beside = {
        role for role, move in engine_moves("sqlite").items() if isinstance(move, dict) and "with" in move
    }
    assert beside == {"log", "doublewrite", "system"} <= {role.value for role in SqliteEngine.roles}
