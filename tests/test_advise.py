"""Advice from a recording: moves, the best placement for the money, goals, wear. The simulator is a fake."""

from __future__ import annotations

import itertools

import pytest
from fake_replay import GB, REQUESTS, SERVICE_US, predictor, service_us

from tierwise.advise import Goal, advise
from tierwise.advise.costs import Costs
from tierwise.advise.endurance import SECONDS_PER_MONTH
from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import RECORDED

DEVICES = ["nvme-dc", "sata-dc", "gp3"]
FULL = ["ssd-nvme-dc", "ssd-sata-dc", "volume-aws-gp3"]
SIZES = {Role.LOG: GB, Role.DATA: 40 * GB, Role.INDEX: 10 * GB, Role.TEMP: GB}


def rate(placement: dict[Role, str]) -> float:
    devices = {role: placement.get(Role(role), RECORDED) for role in REQUESTS}
    return 1e6 / service_us(devices)


def everything() -> list[dict[Role, str]]:
    """Every placement, by itself."""
    return [
        {role: device for role, device in zip(SIZES, choice, strict=True) if device != RECORDED}
        for choice in itertools.product([RECORDED, *FULL], repeat=len(SIZES))
    ]


@pytest.mark.parametrize("budget", [None, 0.0, 2.0, 5.0, 9.9, 10.0, 20.0, 50.0])
def test_the_best_under_a_budget_is_that_of_exhaustive_search(budget: float | None) -> None:
    advice = advise(predictor(), DEVICES, budget)
    costs = Costs(SIZES)
    allowed = [one for one in everything() if budget is None or costs.usd_per_month(one) <= budget]
    top = max(rate(one) for one in allowed)
    cheapest = min(costs.usd_per_month(one) for one in allowed if rate(one) >= top / 1.03)
    assert advice.exact
    assert advice.best
    assert rate(advice.best.placement) >= top / 1.035
    assert advice.best.usd_per_month == pytest.approx(cheapest)


@pytest.mark.parametrize("goal", ["tps=1000", "tps=3000", "p99=2ms", "p50=700us"])
def test_the_cheapest_that_reaches_a_goal_is_that_of_exhaustive_search(goal: str) -> None:
    wanted = Goal.parse(goal)
    option = advise(predictor(), DEVICES, None, wanted).reaching
    assert option
    assert wanted.reached(option.prediction, surely=True)
    bound = wanted.bound if wanted.what == "tps" else 4e6 / wanted.bound
    surely = [one for one in everything() if rate(one) >= 1.25 * bound]
    assert option.usd_per_month <= min(map(Costs(SIZES).usd_per_month, surely)) + 1e-9


def test_a_goal_out_of_reach_has_no_placement() -> None:
    assert advise(predictor(), DEVICES, None, Goal.parse("tps=1000000000")).reaching is None


def test_the_ladder_moves_what_gains_most_for_the_money_until_nothing_does() -> None:
    advice = advise(predictor(), ["nvme-dc"])
    assert [move.role for move in advice.ladder] == ["log", "data", "index"]
    first, *rest = advice.ladder
    assert first.usd_per_month == pytest.approx(profiles.load("ssd-nvme-dc").usd_per_month(GB) or 0.0)
    assert all(move.usd_per_month == 0 for move in rest), "a device that is bought holds the next files too"
    assert first.gain_per_gb == pytest.approx(first.gain_per_s)
    rates = [move.prediction.rate_per_s.value for move in advice.ladder if move.prediction.rate_per_s]
    assert rates == sorted(rates)


def test_rent_goes_by_size_and_a_purchase_is_whole() -> None:
    costs = Costs(SIZES)
    rent = [costs.usd_per_month({role: "volume-aws-gp3"}) for role in (Role.LOG, Role.DATA)]
    assert rent[1] == pytest.approx(40 * rent[0])
    bought = [costs.usd_per_month({role: "ssd-nvme-dc"}) for role in (Role.LOG, Role.DATA)]
    assert bought[0] == bought[1] > 0
    two = costs.usd_per_month({Role.LOG: "ssd-nvme-dc", Role.DATA: "ssd-nvme-dc#2"})
    assert two == pytest.approx(2 * bought[0])


def test_wear_is_what_is_written_against_what_the_maker_allows() -> None:
    best = advise(predictor(), ["nvme-dc"]).best
    assert best
    (worn,) = best.wear
    written = sum(load.written_bytes_per_s for role, load in best.prediction.io.items() if role != "temp")
    assert worn.written_bytes_per_month == pytest.approx(written * SECONDS_PER_MONTH)
    assert worn.months == pytest.approx(2610e12 / worn.written_bytes_per_month)
    gp3 = advise(predictor(), ["gp3"]).best
    assert gp3
    assert gp3.wear[0].months is None


@pytest.mark.parametrize(
    "text", ["tps", "tps=", "tps=0", "tps=5ms", "p99=5", "p98=5ms", "latency=3", "p99=-1ms"]
)
def test_a_goal_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError, match="--goal"):
        Goal.parse(text)


def test_what_cannot_be_advised_is_refused() -> None:
    with pytest.raises(TierwiseError, match="below 0"):
        advise(predictor(), DEVICES, -1.0)
    with pytest.raises(TierwiseError, match="unknown device profile"):
        advise(predictor(), ["nope-nope"])


def test_every_device_of_the_fake_is_a_profile() -> None:
    assert set(SERVICE_US) - {RECORDED} <= set(profiles.names())
