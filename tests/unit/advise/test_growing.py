"""What breaks first when data and load grow, at which factor, and the cheapest answer to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import REQUESTS, FakeReplay, about
from support.paths import RECORDINGS
from tierwise import _core
from tierwise.advise import Advice, AdviceOptions, Goal, PaymentTerms, advise
from tierwise.advise.growth import GrowthAdvice, _GrowthSearch, _UngrownScenario, parse_growth_factor
from tierwise.cli import app
from tierwise.device_models.instances import find_instances
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.predict.model_error import ModelError
from tierwise.predict.replayer import Replayer
from tierwise.recording import RecordingMetadata
from tierwise.report.recording.advice_report import advice_document
from tierwise.report.recording.alternatives import growth_sentences
from tierwise.report.recording.decision_words import goal_sentence

CAPACITY = {
    "recorded": 2.0,
    "volume-aws-gp3": 2.5,
    "ssd-nvme-dc": 50.0,
    "ssd-nvme-instance-store": 50.0,
    "zero": 1e9,
}
"""Load that a device with files sustains, as a multiple of the recorded one."""


class Limited(FakeReplay):
    """Each device sustains a multiple of the recorded load, and each core another."""

    def __init__(self, per_core: float = 10.0, **work: Any) -> None:
        super().__init__(**work)
        self.per_core = per_core

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        outcome = super()._outcome(scenario, profiles, factor)
        if not scenario.get("rate_per_s"):
            return outcome
        places = {role: profiles[place["profile"]].name for role, place in scenario["placement"].items()}
        devices = {places.get(role, "recorded") for role, count in REQUESTS.items() if count}
        work = json.loads(self.work())
        of_cores = self.per_core * (scenario["cores"] or work["cores"])
        sustained = min(of_cores, *(CAPACITY.get(device, 50.0) for device in devices), 1e9)
        recorded = work["observed"]["transactions_per_s"]
        beyond = max(scenario["rate_per_s"] - sustained * recorded, 0.0)
        return outcome | {"waiting": round(beyond * outcome["elapsed_s"])}


def asked(
    fake: Limited,
    devices: Sequence[str] = ("gp3", "nvme-dc"),
    recorded: RecordingMetadata | None = None,
    **more: Any,
) -> Advice:
    predictor = Predictor(recorded or about(), [], Replayer(fake), model_error=ModelError())
    return advise(predictor, AdviceOptions(list(devices), **{"grow": 3.0, **more}))


def grown(advice: Advice) -> GrowthAdvice:
    assert advice.growing is not None
    return advice.growing


def test_the_device_breaks_first_and_the_cheapest_one_that_keeps_up_is_named() -> None:
    advice = asked(Limited())
    growth = grown(advice)
    assert (
        growth.first
        and growth.first.what == "device"
        and growth.first.factor == pytest.approx(2.06, rel=0.03)
    )
    assert growth.keeps_up_to == growth.first.factor
    assert growth.answer and set(growth.answer.placement.values()) == {"ssd-nvme-dc"}, "gp3 ends at 2.5 times"
    assert {limit.what: limit.factor for limit in growth.limits if limit.what != "device"} == {"cores": None}
    sentence = growth_sentences(advice, growth)[0]
    assert sentence.startswith("Growth: the device of") and "The cheapest answer: move" in sentence


def test_an_answer_beyond_the_budget_is_said_to_be() -> None:
    """It was named with its price, as if the budget allowed it."""
    for budget, beyond in ((0.5, True), (1000.0, False), (None, False)):
        advice = asked(Limited(), budget_per_month=budget)
        answer = grown(advice).answer
        assert answer and answer.placement and answer.beyond_budget is beyond, budget
        said = growth_sentences(advice, grown(advice))[0]
        assert (", beyond the budget of 0.50" in said) is beyond, said
    dear = asked(Limited(per_core=0.6), instances=find_instances(["m6i.large"]), budget_per_month=0.5)
    assert "m6i.2xlarge, for 210" in (said := growth_sentences(dear, grown(dear))[0])
    assert "beyond the budget" in said


def test_an_answer_keeps_files_in_memory_only_if_they_can_be_rebuilt_and_says_so() -> None:
    small = Limited(footprints=dict.fromkeys(REQUESTS, 10**8))

    def advised(*devices: str, rebuildable: bool = False) -> Advice:
        return asked(small, devices, terms=PaymentTerms(have=("ram",), rebuildable=rebuildable))

    def answer(advice: Advice) -> set[str]:
        made = grown(advice).answer
        return set(made.placement.values()) if made else set()

    assert answer(advised("ram", "nvme-dc")) == {"ssd-nvme-dc"}, "memory costs nothing here"
    assert answer(advised("ram", "nvme-dc", rebuildable=True)) == {"ram"}
    assert answer(advised("ram")) == set()
    memory = advised("ram", rebuildable=True)
    assert answer(memory) == {"ram"}
    assert "a restart of the machine loses the log" in growth_sentences(memory, grown(memory))[0]


def test_cores_that_saturate_are_counted() -> None:
    advice = asked(Limited(per_core=0.6))
    growth = grown(advice)
    assert [limit.what for limit in growth.limits][:2] == ["cores", "device"]
    assert growth.first and growth.first.factor == pytest.approx(1.24, rel=0.03)
    assert growth.answer and growth.answer.cores == 5 and growth.answer.instance is None
    assert "You need 5 cores for 3 times the load." in growth_sentences(advice, growth)[0]


def test_the_least_number_of_cores_is_found_in_few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most cores, which had been simulated, were again; then half, a quarter and so on, one at a time."""
    monkeypatch.setitem(CAPACITY, "recorded", 1000.0)
    asked_for: list[int] = []
    keeps_up = _GrowthSearch._keeps_up

    def counted(search: _GrowthSearch, case: _UngrownScenario) -> bool:
        asked_for.append(case.cores)
        return keeps_up(search, case)

    monkeypatch.setattr(_GrowthSearch, "_keeps_up", counted)
    answer = grown(asked(Limited(per_core=10.0), grow=100.0)).answer
    assert answer and answer.cores == 10
    assert len(asked_for) <= 6 and 1024 not in asked_for, asked_for


def test_a_machine_with_so_many_cores_is_named_with_its_price() -> None:
    advice = asked(Limited(per_core=0.6), instances=find_instances(["m6i.large"]))
    answer = grown(advice).answer
    assert answer and (answer.cores, answer.instance) == (5, "m6i.2xlarge")
    assert answer.cost_per_month == pytest.approx(280.32 - 70.08)
    assert "5 cores for 3 times the load: m6i.2xlarge, for 210" in growth_sentences(advice, grown(advice))[0]


def test_a_machine_without_a_price_is_named_as_one() -> None:
    unpriced = [machine.changed(per_month=None) for machine in find_instances(["m6i.large", "m6i.2xlarge"])]
    advice = asked(Limited(per_core=0.6), instances=unpriced)
    said = growth_sentences(advice, grown(advice))[0]
    assert "5 cores for 3 times the load: m6i.2xlarge, at a price that is not known." in said


def test_a_load_that_nothing_limits_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPACITY, "recorded", 50.0)
    advice = asked(Limited())
    growth = grown(advice)
    assert growth.first is None and growth.answer is None and growth.keeps_up_to is None
    assert growth_sentences(advice, growth) == [
        "With 3 times the data and the load, nothing that is modelled breaks."
    ]


def test_space_ends_where_the_files_fill_their_device() -> None:
    disk = {"name": "sda", "major": 8, "minor": 0, "mount": "/db", "roles": ["log", "data", "index"]}
    sectors = (75 + 1) * 10**9 // 512
    disk |= {"shared": 0, "first_sector": 0, "sectors": sectors, "profile": None, "write_cache": False}
    growth = grown(asked(Limited(), recorded=about(devices=[disk])))
    space = growth.first
    assert space and space.what == "space" and growth.answer and "data" in growth.answer.placement
    assert space.factor == pytest.approx(1.5, rel=0.01), "50 GB of data and indexes, 1 GB of log"


def device(number: int, gb: float, *roles: str, shared: int | None = None) -> dict[str, Any]:
    named = {"name": f"sd{number}", "major": 8, "minor": number, "mount": f"/{number}", "roles": list(roles)}
    at = {"shared": number if shared is None else shared, "first_sector": 0, "sectors": int(gb * 1e9 / 512)}
    return named | at | {"profile": None, "write_cache": False}


def test_an_answer_that_ends_a_rent_moves_the_idle_files_too() -> None:
    disk = device(1, 1000, "log", "data", "index", "temp")
    on_volume = PaymentTerms(recorded_on={"all": "volume-aws-st1"})
    answer = grown(asked(Limited(), ["nvme-dc"], about(devices=[disk]), terms=on_volume)).answer
    assert answer and answer.cost_per_month is not None and answer.cost_per_month < 0
    assert Role.TEMP in answer.placement, "it has no requests, and the rent ends once nothing is left"
    goal = asked(
        Limited(), ["nvme-dc"], about(devices=[disk]), terms=on_volume, grow=None, goal=Goal.parse("tps=1")
    )
    assert "the temporary files" in goal_sentence(goal), "as cheap as this, they move too"


def test_space_is_of_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition is full whatever is free on another of the same drive."""
    monkeypatch.setitem(CAPACITY, "recorded", 50.0)
    disks = [device(1, 500, "log", shared=0), device(2, 75, "data", "index", shared=0)]
    first = grown(asked(Limited(), recorded=about(devices=disks))).first
    assert first and (first.what, first.roles) == ("space", [Role.DATA, Role.INDEX])
    assert first.factor == pytest.approx(1.5, rel=0.01)


def test_a_log_that_its_settings_let_fill_its_device_is_told_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPACITY, "recorded", 50.0)
    disks = [device(1, 2, "log"), device(2, 500, "data", "index")]
    recorded = about(devices=disks, settings={"max_wal_size": "4GB"})
    advice = asked(Limited(), recorded=recorded)
    first = grown(advice).first
    assert first and (first.what, first.roles, first.factor) == ("space", [Role.LOG], 1.0)
    assert growth_sentences(advice, grown(advice))[0].startswith(
        "Growth: the space for the log breaks first, now."
    )


def test_space_is_not_told_of_files_on_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tablespace on a small device held all of the data before, so that it was said to break first."""
    monkeypatch.setitem(CAPACITY, "recorded", 50.0)
    disks = [device(1, 500, "log", "data", "index"), device(2, 60, "data")]
    advice = asked(Limited(), recorded=about(devices=disks))
    growth = grown(advice)
    assert growth.split == [Role.DATA] and growth.first is None
    assert growth_sentences(advice, growth)[-1] == (
        "When the devices of the data are full is not known: these files lie on several."
    )


def test_a_drive_that_wears_out_is_told() -> None:
    endured = PaymentTerms.parse(recorded_on="nvme-dc", years=50)
    wear = next(limit for limit in grown(asked(Limited(), terms=endured)).limits if limit.what == "wear")
    assert wear.factor is not None and 1 <= wear.factor <= 3


def test_a_page_says_what_breaks_first(tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    asked = ["advise", str(RECORDINGS / "order-entry"), "--devices", "gp3", "--seeds", "2", "-o", str(page)]
    assert CliRunner().invoke(app, [*asked, "--grow", "2x"]).exit_code == 0
    section = page.read_text("utf-8").partition('id="growth"')[2].partition("</section>")[0]
    assert "With 2 times the data and the load" in section and "processor time" in section
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert 'id="growth"' not in page.read_text("utf-8")


def test_tables_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    for options in (["--instance", "m6i.large"], ["--grow", "3x"]):
        asked = ["advise", str(tmp_path), "--devices", "gp3", "--by", "table", *options]
        refused = CliRunner().invoke(app, asked)
        assert isinstance(refused.exception, TierwiseError) and options[0] in str(refused.exception)


def test_work_done_once_is_refused() -> None:
    with pytest.raises(TierwiseError, match="--grow needs transactions"):
        asked(Limited(once=True))


@pytest.mark.parametrize(("text", "factor"), [("3x", 3.0), ("1.5", 1.5), (" 10 x", 10.0)])
def test_a_factor_is_read(text: str, factor: float) -> None:
    assert parse_growth_factor(text) == factor


@pytest.mark.parametrize("text", ["", "1x", "0.5", "300x", "3y", "-2"])
def test_what_is_no_factor_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError, match="--grow"):
        AdviceOptions.parse("gp3", None, None, PaymentTerms(), fresh=False, grow=text)


def test_larger_machines_are_listed_with_their_price() -> None:
    advice = asked(Limited(), instances=find_instances(["m6i.large"]))
    assert [machine.instance for machine in advice.machines] == ["m6i.xlarge", "m6i.2xlarge", "m6i.4xlarge"]
    assert [round(machine.cost_per_month or 0) for machine in advice.machines] == [70, 210, 491]
    assert all(machine.with_moves for machine in advice.machines)
    assert advice.instance and advice.instance.name == "m6i.large"
    assert advice.recorded.scenario.instance and advice.recorded.scenario.cores is None
    titles = [getattr(block, "title", "") for block in advice_document(advice)]
    assert "Machine instead" in titles and "Growth to 3 times the data and the load" in titles


def test_named_machines_take_the_place_of_the_family() -> None:
    advice = asked(Limited(), instances=find_instances(["m6i.large", "r6g.xlarge"]))
    assert [machine.instance for machine in advice.machines] == ["r6g.xlarge"]
    assert asked(Limited()).machines == [] and asked(Limited()).instance is None


def test_an_instance_store_is_for_temporary_files_unless_the_database_can_be_rebuilt() -> None:
    store = "ssd-nvme-instance-store"
    kept = asked(Limited(), ["instance-store"])
    assert not set(kept.decision.option.placement) - {"temp"} and kept.ladder == []
    free = asked(Limited(), ["instance-store"], terms=PaymentTerms(rebuildable=True))
    assert store in free.decision.option.placement.values()
    text = " ".join(str(block) for block in advice_document(free))
    assert "a stop of the machine loses" in text and "takes all its files" in text
