"""Doing nothing is a placement: advice moves files only where the gain can be told from none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.fake_replay import REQUESTS, SERVICE_US, FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise import _core
from tierwise.advise import Advice, AdviceOptions, Goal, PaymentTerms, advise
from tierwise.advise.decision import _remedy
from tierwise.advise.priced_placement import MARGIN
from tierwise.device_models.prices import YEARS, PriceList
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_databases import RecordingLocation
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario
from tierwise.predict.model_error import CalibratedError, ModelError
from tierwise.report.advice import AdviceSurvey, page_decision, survey_advice
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.recording.advice_report import fastest_sentence
from tierwise.report.recording.decision_words import decision_headline

ENGINES = ["postgres", "mariadb", "sqlite", "rocksdb", "duckdb", "oracle"]
VOLUME = {
    "name": "nvme1n1", "major": 259, "minor": 1, "mount": "/pg", "shared": 1, "first_sector": 0,
    "roles": ["log", "data", "index", "temp"], "sectors": 200 << 21, "profile": None, "write_cache": False,
}  # fmt: skip
EXACT = ModelError(
    errors=[
        CalibratedError(
            engine="any", path="any", what=what, changes=["placement"], cases=9, half_width=0.01,
            calibrated="2026-11-21",
        )
        for what in ("rate", "p50", "p95", "p99")
    ]
)  # fmt: skip


class LongerMedian(FakeReplay):
    """Whatever is on flash has a longer median latency, though the rate rises."""

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        outcome = super()._outcome(scenario, profiles, factor)
        names = {profiles[place["profile"]].name for place in scenario["placement"].values()}
        if "ssd-nvme-dc" in names:
            outcome["latency"] |= {"p50_us": 20_000.0}
        return outcome


class ComputesOnFlash(FakeReplay):
    """On the fastest device, sessions compute all of the time, so that the error of the model is greater."""

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        outcome = super()._outcome(scenario, profiles, factor)
        names = {profiles[place["profile"]].name for place in scenario["placement"].values()}
        return outcome | ({"shares": [["cpu", 1.0]]} if "ssd-nvme-dc" in names else {})


def predictor(
    engine: str = "postgres", fake: FakeReplay | None = None, error: ModelError | None = None, **fields: Any
) -> Predictor:
    return fake_predictor(fake, model_error=error, engine=engine, **fields)


def requests(patch: pytest.MonkeyPatch, **of: float) -> None:
    """Requests of each role in a transaction; none of the others."""
    for role in REQUESTS:
        patch.setitem(REQUESTS, role, of.get(role, 0.0))


def page(of: Predictor, advice: Advice) -> AdviceSurvey:
    return survey_advice(of, advice, PaymentTerms(), Path("shop"))


def moved(placement: Mapping[Role, str]) -> dict[str, str]:
    return {role.value: device for role, device in placement.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gain_within_the_error_of_the_model_is_no_reason_to_move(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.04 times (0.85–1.27), as in a report of a user: text, page, JSON, day and explorer stay."""
    requests(monkeypatch, log=0.0021)
    of = predictor(engine)
    advice = advise(of, AdviceOptions(["nvme-dc", "gp3"]))
    assert advice.fastest and advice.fastest.prediction.speedup
    assert 1.02 < advice.fastest.prediction.speedup.value < 1.06 < advice.fastest.prediction.speedup.high
    assert advice.decision.stays and advice.decision.why == "alike"
    assert advice.best.placement == {} and advice.ladder == []
    text = decision_headline(advice)
    assert text.startswith("Nothing you can buy here helps: ") and "no difference that can be told" in text
    shown = page(of, advice)
    assert page_decision.page_headline(shown) == "Nothing you can buy here helps."
    data = advice_page_data(shown)
    assert data["advised"] == 0 and not any(data["figures"]["told"])
    fields = advice.model_dump(mode="json")["decision"]
    assert fields["option"]["placement"] == {} and fields["option"]["cost_per_month"] == 0
    assert fields["time"][0]["remedy"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gain_that_can_be_told_is_one(engine: str) -> None:
    advice = advise(predictor(engine), AdviceOptions(["nvme-dc", "gp3"]))
    assert not advice.decision.stays and advice.decision.why == "faster" and advice.ladder


@pytest.mark.parametrize(("gain", "stays"), [(1.12, True), (1.25, False)])
def test_an_exact_model_still_does_not_resolve_less_than_its_median_error(
    gain: float, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interval of the gain lies above 1 in both cases."""
    requests(monkeypatch, log=200 * (gain - 1) / (4000 - 100 * gain))
    advice = advise(predictor(error=EXACT), AdviceOptions(["nvme-dc"]))
    assert advice.fastest and advice.fastest.prediction.speedup
    assert advice.fastest.prediction.speedup.low > 1
    assert (advice.fastest.prediction.speedup.value <= MARGIN) == stays == advice.decision.stays


@pytest.mark.parametrize("once", [False, True])
def test_a_longer_median_latency_is_no_reason_to_move_but_for_work_done_once(once: bool) -> None:
    advice = advise(predictor(fake=LongerMedian(once=once)), AdviceOptions(["nvme-dc"]))
    assert advice.fastest and not advice.fastest.stays
    assert advice.decision.stays == (not once)
    if not once:
        assert advice.decision.why == "median" and not advice.ladder
        assert decision_headline(advice).startswith("Nothing you can buy here helps every transaction: ")
        assert "makes the median latency longer" in decision_headline(advice)
        assert "makes the median latency 20.0 ms, now " in fastest_sentence(advice)
        assert ", but the 99th percentile " in fastest_sentence(advice)


def test_of_several_the_one_that_lengthens_no_median_is_advised() -> None:
    advice = advise(predictor(fake=LongerMedian()), AdviceOptions(["nvme-dc", "sata-dc"]))
    assert set(advice.decision.option.placement.values()) == {"ssd-sata-dc"}
    assert advice.decision.why == "faster"


@pytest.mark.parametrize(("device", "moves"), [("7k2", True), ("15k-sas", False)])
def test_money_is_saved_where_nothing_gets_slower(
    device: str, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded volume is rented; a bought disk is as fast, or slower."""
    monkeypatch.setitem(SERVICE_US, "hdd-15k-sas", 5200.0)
    of = predictor(devices=[VOLUME])
    advice = advise(of, AdviceOptions([device], terms=PaymentTerms.parse(recorded_on="io2")))
    assert advice.decision.stays != moves
    if moves:
        assert advice.decision.why == "cheaper" and advice.decision.option.cost_per_month < 0
        assert "no difference that can be told" in decision_headline(advice)


@pytest.mark.parametrize(("saving", "moves"), [(0.88, False), (1.5, True)])
def test_a_saving_of_less_than_a_dollar_is_no_reason_to_move(saving: float, moves: bool) -> None:
    """It advised to move all files for 0.88 $ a month, and nothing got faster."""
    terms, of = PaymentTerms.parse(recorded_on="io2"), predictor(devices=[VOLUME])
    rent = advise(of, AdviceOptions(["7k2"], terms=terms)).decision.option.credit_per_month
    disk = terms.prices.shipped["hdd-7k2"].changed(purchase=12 * YEARS * (rent - saving))
    prices = replace(terms.prices, shipped={**terms.prices.shipped, "hdd-7k2": disk})
    advice = advise(of, AdviceOptions(["7k2"], terms=replace(terms, prices=prices)))
    assert advice.decision.stays != moves
    if moves:
        assert advice.decision.option.cost_per_month == pytest.approx(-saving)


@pytest.mark.parametrize(("goal", "stays"), [("tps=100", True), ("tps=900", False), ("tps=90000", False)])
def test_a_goal_is_part_of_the_one_decision(goal: str, stays: bool) -> None:
    of = predictor()
    advice = advise(of, AdviceOptions(["nvme-dc"], goal=Goal.parse(goal)))
    assert advice.decision.stays == stays
    assert page(of, advice).placement == advice.decision.option.placement
    if goal == "tps=100":
        assert decision_headline(advice).startswith(
            "Leave the files where they are: as recorded, they reach 100"
        )
    if goal == "tps=90000":
        assert advice.decision.option == advice.best, "what no placement reaches bends no advice"


def test_a_goal_just_above_the_recorded_rate_does_not_move_for_a_gain_that_cannot_be_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests(monkeypatch, log=0.0021)
    of = predictor()
    advice = advise(of, AdviceOptions(["nvme-dc"], goal=Goal(what="tps", bound=1.01 * of.run.rate_per_s)))
    assert advice.reaching and not advice.reaching.stays, "this one likely reaches it"
    assert advice.decision.stays


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_fleet_moves_nothing_that_advice_would_not(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests(monkeypatch, log=0.0021)
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor(engine))
    options = database_options(
        DatabaseOptionsTask(
            RecordingLocation("toy", "toy"), ("ssd-nvme-dc", "volume-aws-gp3"), PaymentTerms()
        )
    )
    assert isinstance(options, DatabaseOptions)
    assert [option.placement for option in options.options] == [{}]


@pytest.mark.parametrize(
    ("shares", "engine", "expected"),
    [
        ([["runnable", 0.6], ["cpu", 0.4]], "postgres", ["more cores", "faster cores"]),
        ([["client", 0.9], ["cpu", 0.1]], "mariadb", ["fewer round trips"]),
        ([["log_device", 0.4], ["log_queue", 0.3], ["cpu", 0.3]], "sqlite", ["synchronous = NORMAL"]),
        ([["read", 0.8], ["cpu", 0.2]], "duckdb", ["memory_limit"]),
        ([["lock", 0.8], ["cpu", 0.2]], "rocksdb", ["shorter transactions"]),
    ],
    ids=["cores", "client", "setting", "memory", "locks"],
)
def test_the_headline_says_what_would_help_instead(
    shares: list[list[Any]], engine: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests(monkeypatch, log=0.0021)

    class Spent(FakeReplay):
        def _outcome(self, *of: Any) -> dict[str, Any]:
            return super()._outcome(*of) | {"shares": shares}

    words = decision_headline(advise(predictor(engine, Spent()), AdviceOptions(["nvme-dc"])))
    for part in expected:
        assert part in words.partition("What would: ")[2], words


@pytest.mark.parametrize("engine", ENGINES)
def test_the_reason_to_stay_is_where_the_recorded_time_went(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay leaves out waits that nothing explains, and computes in their place."""
    requests(monkeypatch, log=0.0021)

    class Computes(FakeReplay):
        def _outcome(self, *of: Any) -> dict[str, Any]:
            return super()._outcome(*of) | {"shares": [["runnable", 0.9], ["cpu", 0.1]]}

    recorded = {"turns_per_s": 300.0, "transactions_per_s": 100.0, "shares": {"other": 0.8, "cpu": 0.2}}
    of = predictor(engine, Computes(observed=recorded))
    words = decision_headline(advise(of, AdviceOptions(["nvme-dc"]))).replace("\u00a0", " ")
    assert "80 % of the sessions' time is spent elsewhere" in words and "more cores" not in words
    assert "outside of files, locks and clients" in words.partition("What would: ")[2]
    assert of.predict([Scenario(cores=4)])[0].shares == {"runnable": 0.9, "cpu": 0.1}


@pytest.mark.parametrize(
    ("devices", "budget", "expected"),
    [
        (["7k2"], 1.0, "no other placement costs 1 $/month or less"),
        (["7k2"], None, "none of all 8 placements"),
    ],
)
def test_nothing_to_buy_is_said_with_its_reason(
    devices: list[str], budget: float | None, expected: str
) -> None:
    assert expected in decision_headline(advise(predictor(), AdviceOptions(devices, budget))).replace(
        "\u00a0", " "
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_ask_nothing_of_a_device_are_no_reason_against_it(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is in memory: no device is too small or too dear, and nothing is said to be."""
    requests(monkeypatch, log=0.0, data=0.0, index=0.0)
    advice = advise(predictor(engine), AdviceOptions(["nvme-dc", "gp3"]))
    assert advice.best.stays and advice.left_out == []
    text = decision_headline(advice)
    assert "no file asks enough of a device to be worth a move" in text and "fits" not in text


def test_a_wait_that_a_setting_adds_to_each_flush_is_named_first() -> None:
    run = predictor("postgres").run
    plain = _remedy("log", run)
    delayed = run.model_copy(update={"commit_delay_us": 20_100.0})
    assert run.commit_delay_us is None
    assert _remedy("log", delayed) == f"a smaller commit_delay (it adds 20.1 ms to a flush), {plain}"
    assert _remedy("read", delayed) == _remedy("read", run)


def test_a_gain_that_can_be_told_is_advised_below_a_greater_one_that_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The interval of the fastest placement includes no change, that of a slower one does not."""
    requests(monkeypatch, log=1.0)
    unsure = ModelError(errors=[error.changed(per_computing=10.0) for error in EXACT.errors])

    def advice_on(devices: list[str], *owned: str) -> Advice:
        of = predictor(fake=ComputesOnFlash(), error=unsure)
        return advise(of, AdviceOptions(devices, terms=PaymentTerms(have=owned)))

    advice = advice_on(["nvme-dc", "sata-dc"])
    assert advice.fastest and not advice.fastest.prediction.faster
    assert advice.fastest.placement[Role.LOG] == "ssd-nvme-dc"
    assert moved(advice.decision.option.placement) == {"log": "ssd-sata-dc"}
    assert advice.decision.why == "faster" and decision_headline(advice).startswith(
        "Move the log to ssd-sata-dc: "
    )
    assert "cannot be told from no gain" in fastest_sentence(advice)
    owned = advice_on(["nvme-dc", "sata-dc"], "ssd-nvme-dc")
    assert moved(owned.decision.option.placement) == {"log": "ssd-sata-dc"}
    alone = decision_headline(advice_on(["nvme-dc"]))
    assert alone.startswith("Nothing you can buy here is sure to help: ") and "shortens" not in alone
    assert ", the log to ssd-nvme-dc, gives " in alone and "only a trial on a copy of the server can" in alone
    assert "confirm; 70" in alone and "is spent waiting for the log." in alone


@pytest.mark.parametrize("budget", [0.0, 20_000.0, None])
def test_a_greater_gain_that_cannot_be_told_is_no_reason_to_save_no_money(
    budget: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a budget for the faster device, all files stayed; with none, a cheaper one was as good."""
    requests(monkeypatch, log=1.0)
    unsure = ModelError(errors=[error.changed(per_computing=10.0) for error in EXACT.errors])
    of = predictor(fake=ComputesOnFlash(), error=unsure, devices=[VOLUME])
    prices = PriceList.read()
    nvme = prices.shipped["ssd-nvme-dc"].changed(purchase=1e6)
    terms = PaymentTerms.parse(recorded_on="io2")
    terms = replace(terms, prices=replace(prices, shipped={**prices.shipped, "ssd-nvme-dc": nvme}))
    advice = advise(of, AdviceOptions(["nvme-dc", "7k2"], budget_per_month=budget, terms=terms))
    assert moved(advice.decision.option.placement)["log"] == "hdd-7k2"
    assert advice.decision.why == "cheaper" and advice.decision.option.cost_per_month < 0
