"""A fleet: its options, weights, words, page, and the command on the shipped recordings."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from support.every_placement import FULL, cost, everything, rate
from support.fake_replay import predictor
from support.fleet_command import invoke
from support.fleet_factory import (
    EXAMPLES,
    GP3,
    NVME,
    advised,
    chosen,
    database,
    option,
    recorded,
    write_recordings,
)
from support.schemas import problems
from tierwise.advise import AdviceOptions, Goal, PaymentTerms, advise
from tierwise.advise.priced_placement import MARGIN
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_advice import fleet_advice_from_options
from tierwise.fleet.fleet_databases import DatabaseWeight, FleetWeights, RecordingLocation, SkippedRecording
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.report.fleet_report import fleet_document, fleet_headline, fleet_page
from tierwise.report.render import to_html_page, to_markdown

HOSTILE = "</script><img src=x onerror=alert(1)>"
LOG, DATA = Role.LOG, Role.DATA
needs_scipy = pytest.mark.skipif(
    find_spec("scipy") is None, reason="scipy of the extra cluster is not installed"
)


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return write_recordings(tmp_path / "recordings")


def weights(**of: DatabaseWeight) -> FleetWeights:
    return FleetWeights(of, Path("weights.toml"))


@needs_scipy
def test_a_fleet_of_shipped_recordings(recordings: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    printed = invoke(
        f"{recordings}/*", "--devices", "nvme-dc,gp3", "--budget", "12/month", "--seeds", "2",
        "--format", "json", "-o", str(page),
    )  # fmt: skip
    content = json.loads(printed[: printed.rindex("}") + 1])
    assert not problems("fleet-advice", content)
    fleet = content["fleet"]
    assert [database["name"] for database in fleet["databases"]] == ["keyed-update", "order-entry"]
    assert [load["name"] for load in fleet["left_out"]] == ["photos", "torn"]
    assert "blocks.parquet" in fleet["left_out"][1]["problem"]
    assert 0 < fleet["cost_per_month"] <= 12 < fleet["full_cost_per_month"] and fleet["gap"] == 0
    assert 0 < fleet["gain_share"]["low"] <= fleet["gain_share"]["value"] < 1
    assert fleet["moves"][0]["chosen"] and fleet["moves"][0]["draws_share"] > 0.5
    shown = page.read_text("utf-8")
    assert shown.count("<svg") == 2 and "order-entry" in shown and "torn" in shown


@pytest.mark.parametrize(("p99", "bound_us"), [("1us", 1.0), ("0.5ms", 500.0), ("2min", 120e6)])
def test_a_weight_and_a_goal_take_the_same_durations(p99: str, bound_us: float, tmp_path: Path) -> None:
    """``1us`` was a goal, and no duration in the weights."""
    file = tmp_path / "weights.toml"
    file.write_text(f'[databases.shop]\np99 = "{p99}"\n')
    goal = FleetWeights.read(file).of("shop").goal
    assert goal == Goal.parse(f"p99={p99}") and goal.bound == bound_us


@pytest.mark.parametrize("p99", ["5", '"5"', '"0.5 "'])
def test_a_p99_without_a_unit_is_refused(p99: str, tmp_path: Path) -> None:
    """``"5"`` was 5 seconds, which every placement reaches."""
    file = tmp_path / "weights.toml"
    file.write_text(f"[databases.shop]\np99 = {p99}\n")
    with pytest.raises(TierwiseError, match=r"databases\.shop\.p99: .* has no unit: write for example 5ms"):
        FleetWeights.read(file)


@needs_scipy
def test_the_best_set_in_words(snapshot: SnapshotAssertion) -> None:
    shops = [
        database(
            f"shop-{n}", option(30, 2 + n / 10, spread=1.3), option(160, 3 + n / 10, [LOG, DATA], spread=1.3)
        )
        for n in range(3)
    ]
    slow = database(
        "ledger", option(45, 1.1, device=GP3, spread=1.2, seed_half_width=0.05), warnings=["it was short"]
    )
    torn = SkippedRecording(
        name="torn", uri="recordings/torn", problem="blocks.parquet is cut", fix="record again"
    )
    advice = advised(*shops, slow, torn, budget="260/month", frozen=["archive"])
    shown = fleet_document(advice.model_copy(update={"prices": []}))  # those that ship change
    assert to_markdown(shown).replace("\u00a0", " ") == snapshot


@needs_scipy
def test_the_headline_counts_databases_by_role() -> None:
    logs = [database(f"a{n}", option(10, 3.0)) for n in range(31)]
    both = [database(f"b{n}", option(20, 4.0, [LOG, DATA])) for n in range(4)]
    rest = [database(f"c{n}", option(900, 1.5, [DATA])) for n in range(4)]
    text = fleet_headline(advised(*logs, *both, *rest, budget="400/month")).replace("\u00a0", " ")
    assert text.startswith(
        "Move the logs of 35 databases and the data of 4: 95 % of all that could be gained, for 9.8 %"
    )
    assert fleet_headline(advised(database("a", option(10, 3.0)), budget="5")).startswith(
        "Move nothing: no move for 5\u00a0$/month"
    )
    saved = fleet_headline(advised(database("a", option(-10, 1.2, [DATA])))).replace("\u00a0", " ")
    assert saved == "Move the data of a: all that could be gained, and 10 $/month less."


@needs_scipy
@pytest.mark.parametrize("budget", [None, "0", "50"])
@pytest.mark.parametrize(("speedup", "moves"), [(0.999, True), (0.9, False)])
def test_what_only_saves_money_is_taken(budget: str | None, speedup: float, moves: bool) -> None:
    """A speed-up of 0.999, by chance of the seeds, was taken for a loss that no saving outweighs."""
    advice = advised(database("a", option(-90, speedup, [DATA], spread=1.7)), budget=budget)
    said = "Move the data of a: nothing is gained, and 90 $/month less."
    assert bool(advice.databases[0].option.placement) == moves
    assert (fleet_headline(advice).replace("\u00a0", " ") == said) == moves


@needs_scipy
def test_a_saving_that_is_no_sure_gain_does_not_outweigh_a_move_that_is() -> None:
    """It took the saving, whose estimate is greater and whose interval includes no change."""
    saving, move = option(-5, 1.3, [DATA], spread=1.5, told=False), option(10, 1.2, [LOG], spread=1.1)
    assert chosen(advised(database("a", saving, move))) == {"a": [LOG]}
    assert chosen(advised(database("a", saving, move), budget="0")) == {"a": [DATA]}


@pytest.mark.parametrize("goal", [None, "p99=2ms"])
def test_the_options_of_a_database_are_those_of_exhaustive_search(
    goal: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a placement costs, an option that costs no more is as fast, but for a step of the ladder."""
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor())
    wanted = Goal.parse(goal) if goal else None
    task = DatabaseOptionsTask(RecordingLocation("toy", "toy"), tuple(FULL), PaymentTerms(), wanted)
    row = database_options(task)
    assert isinstance(row, DatabaseOptions)
    options, base = row.options, rate({})
    assert options[0].placement == {} and options[0].gain == 0
    assert [option.cost_per_month for option in options] == sorted(
        option.cost_per_month for option in options
    )
    allowed = [option for option in options if option.verdict in (None, "reached")]
    for placement in everything():
        if wanted and 4e6 / rate(placement) > wanted.bound / 1.25:
            continue
        near = [option for option in allowed if option.cost_per_month <= 1.01 * cost(placement)]
        assert max(option.speedup.value for option in near) * MARGIN * 1.01 >= rate(placement) / base


@pytest.mark.parametrize("name", ["keyed-update", "think-time"])
def test_a_fleet_has_the_placement_that_advise_recommends(name: str) -> None:
    """One by less than the margin faster was taken, and one whose gain cannot be told from chance."""
    path, devices = EXAMPLES / name, (NVME, GP3)
    rows = database_options(DatabaseOptionsTask(RecordingLocation(name, str(path)), devices, PaymentTerms()))
    alone = advise(Predictor.open(path), AdviceOptions(devices)).decision.option
    assert isinstance(rows, DatabaseOptions)
    assert [each.told for each in rows.options] == [each.speedup.low > 1 for each in rows.options]
    fastest = max(rows.options, key=lambda each: each.gain)
    assert (fastest.placement, fastest.cost_per_month) == (alone.placement, alone.cost_per_month)


@needs_scipy
def test_a_fleet_of_one_database_moves_for_a_budget_what_advise_would() -> None:
    """It moved the system files too, for a gain within the margin."""
    path, devices = EXAMPLES / "keyed-update", (NVME, GP3, "ssd-sata-dc")
    rows = database_options(
        DatabaseOptionsTask(RecordingLocation("shop", str(path)), devices, PaymentTerms())
    )
    alone = advise(Predictor.open(path), AdviceOptions(devices, 9.9)).decision.option
    fleet = advised(rows, budget="9.90/month").databases[0].option
    assert (fleet.placement, fleet.cost_per_month) == (alone.placement, alone.cost_per_month)


@pytest.mark.parametrize("p99", ["17ms", "6ms"])
def test_a_fleet_moves_for_a_p99_what_advise_would(p99: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement that reached it was taken, though it could not be told from staying."""
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor())
    monkeypatch.setattr("tierwise.advise.search.PlacementSearch.is_told", lambda *_: False)
    rows = database_options(
        DatabaseOptionsTask(
            RecordingLocation("toy", "toy"), (NVME,), PaymentTerms(), Goal.parse(f"p99={p99}")
        )
    )
    assert isinstance(rows, DatabaseOptions)
    assert not any(option.placement for option in rows.options)


@needs_scipy
def test_a_fleet_without_a_budget_pays_for_a_gain_what_advise_does() -> None:
    """It took io2 for 3,544 $/month, where advise takes gp3 for 0.08."""
    path, devices = EXAMPLES / "order-entry", ("volume-aws-io2", GP3)
    rows = database_options(
        DatabaseOptionsTask(RecordingLocation("shop", str(path)), devices, PaymentTerms(), seeds=2)
    )
    alone = advise(Predictor.open(path, seeds=2), AdviceOptions(devices)).decision.option
    assert isinstance(rows, DatabaseOptions)
    fleet = advised(rows)
    assert fleet.cost_per_month == alone.cost_per_month < 1 < fleet.full_cost_per_month
    assert "--budget allows what these cost" in to_markdown(fleet_document(fleet))
    assert advised(rows, budget="4000").cost_per_month > 3000


@needs_scipy
def test_a_fleet_whose_currency_has_no_rent_says_that_no_gain_is_too_dear(tmp_path: Path) -> None:
    """It advised 17,958 €/month, where 1.26 gain nearly as much, without a word."""
    file = tmp_path / "prices.toml"
    file.write_text(
        'currency = "EUR"\n[devices.ssd-nvme-dc]\npurchase = 600\nsource = "our supplier"\ndate = "2026"\n'
    )
    euros, dollars = PaymentTerms.parse(prices=file), PaymentTerms()
    shop, words = database("a", option(3000, 6.0)), "no gain is taken as too dear: give --budget"

    def notes(terms: PaymentTerms, budget: float | None) -> list[str]:
        asked = AdviceOptions([NVME], budget_per_month=budget, terms=terms)
        return [note.text for note in fleet_advice_from_options([shop], asked, FleetWeights(), draws=2).notes]

    assert any(note.endswith(words) for note in notes(euros, None))
    assert not any(words in note for note in [*notes(euros, 50.0), *notes(dollars, None)])
    with pytest.raises(TierwiseError, match="gp3 has no price in EUR") as refused:
        fleet_advice_from_options([shop], AdviceOptions([GP3], terms=euros), FleetWeights())
    assert "--have" not in refused.value.fix, "a fleet has no such option"


@needs_scipy
def test_what_is_not_worth_its_price_is_taken_where_a_p99_needs_it() -> None:
    options = recorded("missed"), option(10, 5.0, verdict="missed"), option(3000, 6.0, verdict="reached")
    shop = database("a", *options).changed(worth_per_month=50.0)
    assert advised(shop, weights=weights(a=DatabaseWeight(p99="5ms"))).cost_per_month == 3000
    shop = database("a", option(10, 5.0), option(3000, 6.0))
    assert advised(shop.changed(worth_per_month=50.0)).cost_per_month == 10
    assert advised(shop).cost_per_month == 3000, "no rent of a machine is known in its currency"


@pytest.mark.parametrize("goal", [None, "p99=3ms"])
def test_files_that_must_last_are_kept_in_memory_only_if_they_can_be_rebuilt(goal: str | None) -> None:
    """Memory is cheaper and faster here than the drive."""
    wanted, at = Goal.parse(goal) if goal else None, RecordingLocation("shop", str(EXAMPLES / "order-entry"))

    def devices(candidates: tuple[str, ...], *, rebuildable: bool = False) -> set[str]:
        rows = database_options(
            DatabaseOptionsTask(at, candidates, PaymentTerms(rebuildable=rebuildable), wanted, seeds=2)
        )
        assert isinstance(rows, DatabaseOptions)
        return {device for option in rows.options for device in option.placement.values()}

    assert devices(("ram", "ssd-nvme-dc")) == {"ssd-nvme-dc"}
    assert devices(("ram",)) == set()
    assert devices(("ram",), rebuildable=True) == {"ram"}


@needs_scipy
def test_an_answer_that_puts_files_in_memory_says_what_a_restart_loses() -> None:
    caution = "a restart of the machine loses what is moved to memory: the log of a to ram."
    assert caution in to_markdown(fleet_document(advised(database("a", option(3, 3.0, device="ram")))))
    assert "loses" not in to_markdown(fleet_document(advised(database("a", option(3, 3.0)))))


@needs_scipy
def test_importance_decides_who_gets_the_money() -> None:
    fleet = [database("a", option(100, 2.0)), database("b", option(100, 1.9))]
    assert chosen(advised(*fleet, budget="100")) == {"a": [LOG]}
    assert chosen(advised(*fleet, budget="100", weights=weights(b=DatabaseWeight(importance=2)))) == {
        "b": [LOG]
    }


@needs_scipy
def test_a_p99_that_must_be_had_goes_before_gain() -> None:
    needy = database(
        "a", recorded("missed"), option(80, 1.1, verdict="reached"), option(10, 1.05, verdict="missed")
    )
    rich = database("b", option(100, 9.0))
    weighed = weights(a=DatabaseWeight(p99="5ms"))
    easy = database("a", option(80, 1.1), option(10, 1.05))
    assert chosen(advised(easy, rich, budget="100")) == {"b": [LOG]}
    advice = advised(needy, rich, budget="100", weights=weighed)
    assert chosen(advice) == {"a": [LOG]}
    assert advice.databases[0].must_have_p99_us == 5000 and not advice.databases[0].p99_missed
    with pytest.raises(TierwiseError, match=r"--budget.* 80\.00 \$/month"):
        advised(needy, rich, budget="79", weights=weighed)


@needs_scipy
def test_a_p99_that_no_placement_reaches_is_named() -> None:
    poor = database("a", recorded("missed"), option(10, 2.0, verdict="likely missed"))
    advice = advised(poor, budget="50", weights=weights(a=DatabaseWeight(p99="1ms")))
    assert advice.databases[0].p99_missed and chosen(advice) == {"a": [LOG]}
    assert "No placement reaches the p99" in to_markdown(fleet_document(advice))
    unsure = database("b", recorded("missed"), option(10, 2.0, verdict="likely reached"))
    likely = advised(unsure, budget="50", weights=weights(b=DatabaseWeight(p99="1ms")))
    assert not likely.databases[0].p99_missed and "likely reach" in to_markdown(fleet_document(likely))


@needs_scipy
@pytest.mark.parametrize("budget", ["10/month", None])
def test_no_money_goes_to_a_recording_that_is_not_usable(budget: str | None) -> None:
    bad = database("bad", option(10, 90.0), option(-5, 1.0)).changed(
        unusable=["the replay is off: record longer"]
    )
    weights = FleetWeights({"bad": DatabaseWeight(importance=9, p99="1us")})
    advice = advised(bad, database("good", option(10, 3.0)), budget=budget, weights=weights)
    assert chosen(advice) == {"good": ["log"]} and advice.cost_per_month == 10
    assert advice.gain == pytest.approx(advice.full_gain) and {move.database for move in advice.moves} == {
        "good"
    }
    assert not any(each.p99_missed for each in advice.databases)


def test_a_frozen_database_is_not_opened(recordings: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights.toml"
    file.write_text(
        '[databases.order-entry]\nfrozen = true\n[databases.keyed-update]\nimportance = 3\np99 = "9s"\n'
    )
    (recordings / "order-entry" / "about.json").write_text("{}")
    asked = [f"{recordings}/*-*", "--devices", "nvme-dc", "--seeds", "2", "--weights", str(file)]
    fleet = json.loads(invoke(*asked, "--format", "json"))["fleet"]
    assert fleet["frozen"] == ["order-entry"] and fleet["left_out"] == []
    (database,) = fleet["databases"]
    assert (database["importance"], database["must_have_p99_us"], database["p99_missed"]) == (3, 9e6, False)
    file.write_text("[databases.order_entry]\nfrozen = true\n")
    with pytest.raises(TierwiseError, match=r"order_entry.*did you mean order-entry"):
        invoke(*asked)


@needs_scipy
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nothing-here/*", "--devices", "nvme-dc"], "no recording can be used.*nothing-here"),
        ([str(EXAMPLES / "order-entry")], "no device"),
        ([str(EXAMPLES / "order-entry"), "--devices", "zero"], "zero has no price"),
        ([str(EXAMPLES / "order-entry"), "--devices", "nvme-dc", "-o", "fleet.txt"], "--output"),
        ([str(EXAMPLES), "--devices", "nvme-dc"], "holds recordings of a day"),
    ],
)
def test_what_cannot_be_advised_is_refused(arguments: list[str], named: str) -> None:
    with pytest.raises(TierwiseError, match=named):
        invoke(*arguments)


@needs_scipy
def test_names_from_strangers_are_text_on_the_page() -> None:
    torn = SkippedRecording(name=HOSTILE, uri=HOSTILE, problem=HOSTILE, fix=HOSTILE)
    page = to_html_page(fleet_page(advised(database(HOSTILE, option(10, 2.0), warnings=[HOSTILE]), torn)))
    assert "<img" not in page and "&lt;img" in page
