"""Advice from a recording: moves, the best placement for the money, goals, wear. The simulator is a fake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.every_placement import cost, everything, rate
from support.fake_replay import REQUESTS, SERVICE_US, predictor, service_us
from tierwise.advise import AdviceOptions, Goal, PaymentTerms, advise
from tierwise.advise.priced_placement import MARGIN
from tierwise.advise.wear import SECONDS_PER_MONTH
from tierwise.device_models import profiles
from tierwise.device_models.prices import PriceList
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, rank_placements
from tierwise.predict.ranking import placement_of_prediction, rate_of
from tierwise.report.recording.advice_report import fastest_sentence, left_out_sentences

DEVICES = ["nvme-dc", "sata-dc", "gp3"]


def as_good(budget: float | None) -> list[dict[Role, str]]:
    """Placements that the budget allows and that are within the margin of the fastest of them."""
    allowed = [placement for placement in everything() if budget is None or cost(placement) <= budget]
    top = max(map(rate, allowed))
    return [placement for placement in allowed if rate(placement) >= top / MARGIN]


@pytest.mark.parametrize("budget", [None, 0.0, 2.0, 5.0, 9.9, 10.0, 20.0, 50.0])
def test_the_best_under_a_budget_is_that_of_exhaustive_search(budget: float | None) -> None:
    advice = advise(predictor(), AdviceOptions(DEVICES, budget))
    good = as_good(budget)
    cheapest = min(map(cost, good))
    fewest = min(len(placement) for placement in good if cost(placement) == pytest.approx(cheapest))
    assert advice.exact and advice.fastest
    assert rate(advice.fastest.placement) == pytest.approx(max(map(rate, good)), rel=0.01)
    assert advice.best.cost_per_month == pytest.approx(cheapest)
    assert len(advice.best.placement) == fewest
    least = min(map(len, good))
    assert len((advice.simpler or advice.best).placement) == least
    assert advice.decision.option == advice.best, "without a goal, the best is the decision"


def of_nvme(purchase: int, file: Path) -> PriceList:
    """Shipped prices, but another one of this drive."""
    price = f'purchase = {purchase}\nsource = "our supplier"\ndate = "2026"\n'
    file.write_text(f'currency = "USD"\n[devices.ssd-nvme-dc]\n{price}')
    return PriceList.read(file)


@pytest.mark.parametrize(
    ("purchase", "budget", "device"),
    [
        (5_000, None, "ssd-nvme-dc"),  # 83 $/month
        (100_000, None, "volume-aws-gp3"),  # 1,667 $/month, for 5 times what gp3 gives beside a machine of 70
        (100_000, 2_000.0, "ssd-nvme-dc"),
    ],
)
def test_a_gain_costs_no_more_than_as_much_from_more_machines(
    purchase: int, budget: float | None, device: str, tmp_path: Path
) -> None:
    terms = PaymentTerms(prices=of_nvme(purchase, tmp_path / "prices.toml"))
    advice = advise(predictor(), AdviceOptions(["gp3", "nvme-dc"], budget, terms=terms))
    assert set(advice.decision.option.placement.values()) == {device}
    sentence = fastest_sentence(advice).replace("\u00a0", " ")
    dearer = "More machines gain as much for less, at about 70.08 $/month each" in sentence
    assert dearer == (device == "volume-aws-gp3")


def test_what_is_not_worth_its_price_is_taken_where_nothing_else_helps(tmp_path: Path) -> None:
    terms = PaymentTerms(prices=of_nvme(1_000_000, tmp_path / "prices.toml"))
    advice = advise(predictor(), AdviceOptions(["nvme-dc"], terms=terms))
    assert set(advice.decision.option.placement.values()) == {"ssd-nvme-dc"}


def test_a_move_that_adds_less_than_the_margin_is_not_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the log and the data on the SSD, the indexes add a tenth: the step is named, and left out."""
    monkeypatch.setitem(REQUESTS, "index", 0.01)
    advice = advise(predictor(), AdviceOptions(["nvme-dc"]))
    assert advice.best and advice.fastest and advice.step_to_fastest
    assert set(advice.best.placement) == {"log", "data"}
    assert set(advice.fastest.placement) == {"log", "data", "index"}
    assert 1.05 < advice.step_to_fastest.low <= advice.step_to_fastest.value < MARGIN
    assert [move.role for move in advice.ladder] == ["log", "data"]


def test_the_fastest_moves_nothing_that_gains_less_than_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recommended device is a cheaper one, so that the fastest placement is named with its price."""
    for role, requests in {"log": 0.1, "data": 0.0002, "index": 0.0002}.items():
        monkeypatch.setitem(REQUESTS, role, requests)
    fastest = advise(predictor(), AdviceOptions(DEVICES)).fastest
    assert fastest and set(fastest.placement) == {"log"}


def test_of_owned_devices_advice_and_ranking_take_the_fewest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices are a hundredth faster than either: that is chance."""

    def less_for_two(devices: dict[str, str], *args: Any, **named: Any) -> float:
        return service_us(devices, *args, **named) * (1 if devices["data"] == devices["log"] else 0.99)

    monkeypatch.setattr("support.fake_replay.service_us", less_for_two)
    devices = ["ssd-nvme-dc", "ssd-sata-dc"]
    for name in devices:
        monkeypatch.setitem(SERVICE_US, name, 100.0)
    advice = advise(predictor(), AdviceOptions(devices, terms=PaymentTerms.parse(have=",".join(devices))))
    assert (
        rate_of(rank_placements(predictor(), devices).closer[0])
        < rank_placements(predictor(), devices).ranked[0].rate_per_s
    )
    assert set(advice.decision.option.placement.values()) == {"ssd-nvme-dc"}
    assert advice.decision.option.placement == placement_of_prediction(
        rank_placements(predictor(), devices).closer[0]
    )


@pytest.mark.parametrize("goal", ["tps=1000", "tps=3000", "p99=2ms", "p50=700us"])
def test_the_cheapest_that_reaches_a_goal_is_that_of_exhaustive_search(goal: str) -> None:
    wanted = Goal.parse(goal)
    option = advise(predictor(), AdviceOptions(DEVICES, None, wanted)).reaching
    assert option
    assert wanted.verdict(option.prediction) == "reached"
    bound = wanted.bound if wanted.what == "tps" else 4e6 / wanted.bound
    surely = [placement for placement in everything() if rate(placement) >= 1.25 * bound]
    least = min(map(cost, surely))
    assert option.cost_per_month <= 1.01 * least, "wear orders candidates by the writes of a first look"


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.75, "reached"), (0.95, "likely reached"), (1.1, "likely missed"), (1.5, None)]
)
def test_a_goal_inside_an_interval_is_likely_reached_or_missed(share: float, verdict: str | None) -> None:
    top = advise(predictor(), AdviceOptions(DEVICES)).fastest
    assert top and top.prediction.rate_per_s
    goal = Goal(what="tps", bound=share * top.prediction.rate_per_s.value)
    reaching = advise(predictor(), AdviceOptions(DEVICES, None, goal)).reaching
    assert (reaching and goal.verdict(reaching.prediction)) == verdict


def test_the_closest_to_a_goal_moves_nothing_that_gains_less_than_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for role, requests in {"log": 0.1, "data": 0.0002, "index": 0.0002}.items():
        monkeypatch.setitem(REQUESTS, role, requests)
    top = advise(predictor(), AdviceOptions(DEVICES)).fastest
    assert top and top.prediction.rate_per_s
    goal = Goal(what="tps", bound=1.15 * top.prediction.rate_per_s.value)
    reaching = advise(predictor(), AdviceOptions(DEVICES, None, goal)).reaching
    assert reaching and goal.verdict(reaching.prediction) == "likely missed"
    assert set(reaching.placement) == {"log"}


def test_a_device_that_the_budget_leaves_out_is_named_with_its_price() -> None:
    advice = advise(
        predictor(),
        AdviceOptions(["io2", "gp3", "ssd-sata-slc-2008"], 100.0, terms=PaymentTerms.parse(growth="5000%")),
    )
    whole = [excluded for excluded in advice.left_out if not excluded.roles]
    assert [(excluded.device, excluded.least_cost_per_month) for excluded in whole] == [
        ("volume-aws-io2", pytest.approx(64 * 0.125 + 32_000 * (0.065 + 0.0455))),
        ("ssd-sata-slc-2008", None),
    ], "one for its price, one since it cannot hold the log when it has grown to 51 GB"


def test_the_price_of_a_device_that_the_budget_leaves_out_is_a_budget_that_pays_for_it() -> None:
    terms = PaymentTerms(years=7)
    dear = advise(predictor(), AdviceOptions(["nvme-dc"], 7.14, terms=terms))
    assert any("(at least 7.15\u00a0$/month)" in line for line in left_out_sentences(dear))
    assert not advise(predictor(), AdviceOptions(["nvme-dc"], 7.15, terms=terms)).left_out


def test_the_ladder_moves_what_gains_most_for_the_money_until_nothing_does() -> None:
    advice = advise(predictor(), AdviceOptions(["nvme-dc"]))
    first, *rest = advice.ladder
    assert first.role == "log" and first.cost_per_month >= 600 / 60
    worn = cost({Role(move.role): "ssd-nvme-dc" for move in advice.ladder})
    assert sum(move.cost_per_month for move in rest) == pytest.approx(worn - first.cost_per_month)
    assert first.gain_per_gb == pytest.approx(first.gain_per_s)
    rates = [move.prediction.rate_per_s.value for move in advice.ladder if move.prediction.rate_per_s]
    assert rates == sorted(rates)


def test_wear_is_what_is_written_against_what_the_maker_allows() -> None:
    """At the recorded rate by default; beside it at the predicted rate, of a load that fills it."""
    advice = advise(predictor(), AdviceOptions(["nvme-dc"]))
    (worn,) = advice.best.wear

    def written(answer: Prediction) -> float:
        return sum(load.written_bytes_per_s for role, load in answer.io.items() if role != "temp")

    assert worn.written_bytes_per_month == pytest.approx(written(advice.recorded) * SECONDS_PER_MONTH)
    assert worn.months == pytest.approx(2610e12 / worn.written_bytes_per_month)
    faster = written(advice.best.prediction) * SECONDS_PER_MONTH
    assert worn.predicted_bytes_per_month == pytest.approx(faster)
    assert worn.predicted_months == pytest.approx(2610e12 / faster)
    assert advise(predictor(), AdviceOptions(["gp3"])).best.wear[0].months is None


@pytest.mark.parametrize(
    "text", ["tps", "tps=", "tps=0", "tps=5ms", "p99=5", "p98=5ms", "latency=3", "p99=-1ms"]
)
def test_a_goal_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError, match="--goal"):
        Goal.parse(text)


def test_what_cannot_be_advised_is_refused() -> None:
    with pytest.raises(TierwiseError, match="below 0"):
        advise(predictor(), AdviceOptions(DEVICES, -1.0))
    with pytest.raises(TierwiseError, match="unknown device profile"):
        advise(predictor(), AdviceOptions(["nope-nope"]))
    with pytest.raises(TierwiseError, match="no device"):
        advise(predictor(), AdviceOptions([]))
    with pytest.raises(TierwiseError, match="zero has no price in USD"):
        advise(predictor(), AdviceOptions(["zero"]))


def test_every_device_of_the_fake_is_a_profile() -> None:
    assert set(SERVICE_US) - {RECORDED} <= set(profiles.profile_names())
