"""Bills: every price has its parts, which add up, in records, text, page and explorer; wear at two rates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_replay import FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.advise.costs import DeviceBill, PlacementCosts
from tierwise.advise.wear import SECONDS_PER_MONTH
from tierwise.device_models import profiles
from tierwise.device_models.prices import PriceList, bill_part, bill_parts, cost_per_month
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.report.advice import survey_advice
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.recording.decision_words import bill_table

PRICES = PriceList.read()
GIB = 1 << 30
PRICED = [name for name in profiles.profile_names() if name != "zero"]
OWN = 'like = "volume-aws-gp3"\nsummary = "gp3 with 500 MiB/s"\n[limits.iops]\nprovisioned = 6000\n' + (
    '[limits.{unit}]\nprovisioned = {rate}\n[source]\n"limits.iops" = "by choice, more I/Os"\n'
    '"limits.{unit}" = "by choice, 500 MiB/s"\n'
)


def predictor(engine: str = "postgres", **fake: object) -> Predictor:
    return fake_predictor(FakeReplay(**fake), engine=engine)  # type: ignore[arg-type]


@given(
    st.sampled_from(PRICED),
    st.integers(min_value=0, max_value=1 << 41),
    st.floats(min_value=0.5, max_value=9),
)
def test_the_parts_of_a_bill_add_up_to_its_price(name: str, size_bytes: int, years: float) -> None:
    parts = bill_parts(profiles.load_profile(name), PRICES, size_bytes, years)
    assert parts
    assert all(part.per_month == pytest.approx(part.quantity * part.price_each) for part in parts)
    assert all(part.quantity > 0 for part in parts)
    total = cost_per_month(profiles.load_profile(name), PRICES, size_bytes, years)
    assert total == pytest.approx(sum(part.per_month for part in parts))


@pytest.mark.parametrize(("unit", "rate"), [("mib_per_s", "500"), ("mb_per_s", "524.288")])
def test_a_volume_of_500_mib_per_s_is_billed_for_375_in_either_unit(
    unit: str, rate: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN.format(unit=unit, rate=rate))
    parts = bill_parts(profiles.load_profile(str(file)), PRICES, 100 * GIB)
    assert parts and [(part.what, round(part.quantity, 6), part.price_each) for part in parts] == [
        ("size", 100, 0.08),
        ("iops", 3000, 0.005),
        ("throughput", 375, 0.04),
    ]


def test_steps_of_a_price_are_parts_of_their_own() -> None:
    parts = bill_parts(profiles.load_profile("io2"), PRICES, GIB)
    assert parts and [(part.what, part.quantity, part.price_each) for part in parts] == [
        ("size", 64, 0.125),
        ("iops", 32_000, 0.065),
        ("iops", 32_000, 0.0455),
    ]


@given(st.integers(min_value=0, max_value=1 << 40))
def test_a_byte_more_than_a_step_is_a_step_more(size_bytes: int) -> None:
    parts = bill_parts(profiles.load_profile("gp3"), PRICES, size_bytes)
    assert parts and parts[0].quantity == max(-(-size_bytes // GIB), 1)


@pytest.mark.parametrize("engine", ["postgres", "mariadb", "sqlite"])
def test_wear_is_billed_at_the_recorded_rate_and_shown_at_the_predicted_one(engine: str) -> None:
    """The faster placement writes 19 times as much only if the load fills it."""
    advice = advise(predictor(engine), AdviceOptions(["nvme-dc"]))
    option = advice.decision.option
    assert option.prediction.speedup and option.prediction.speedup.value > 10
    (bill,) = option.bills
    assert [part.what for part in bill.parts] == ["purchase"] and bill.per_month == pytest.approx(10)
    assert option.cost_per_month == pytest.approx(10)
    assert option.cost_at_predicted_rate_per_month > 5 * option.cost_per_month
    (worn,) = option.wear
    assert worn.months and worn.predicted_months and worn.months > 10 * worn.predicted_months


def test_a_load_that_wears_a_drive_out_as_recorded_pays_for_the_next_one() -> None:
    """2,610 TB in 20 months: three drives in five years, two of them replacements."""
    written = 2610e12 / 20 / SECONDS_PER_MONTH
    costs = PlacementCosts({Role.LOG: GIB}, written={Role.LOG: written})
    bill = costs.bill({Role.LOG: "ssd-nvme-dc"})
    (device,) = bill.devices
    assert {part.what: part.quantity for part in device.parts} == {
        "purchase": 1,
        "replacement": pytest.approx(2),
    }
    assert bill.cost_per_month == pytest.approx(30)
    assert costs.bill({Role.LOG: "ssd-nvme-dc"}, {}).cost_per_month == pytest.approx(10)


@pytest.mark.parametrize("devices", [["nvme-dc", "gp3"], ["io2"], ["gp3-16k", "ram"]])
def test_columns_of_the_explorer_and_their_parts_agree_with_the_cost_of_each_placement(
    devices: list[str],
) -> None:
    of, terms = predictor(), PaymentTerms(rebuildable="ram" in devices)
    advice = advise(of, AdviceOptions(devices, terms=terms))
    data = advice_page_data(survey_advice(of, advice, terms, Path("shop")))
    for billed, cost in zip(data["billed"], data["figures"]["cost"], strict=True):
        amounts = [data["bills"][number]["amount"] for number in billed]
        assert sum(amounts) == pytest.approx(cost, rel=1e-3, abs=1e-3)
    for bill in data["bills"]:
        assert sum(amount for _, amount in bill["parts"]) == pytest.approx(bill["amount"], abs=1e-3)


def test_the_table_of_a_bill_sums_to_the_price_in_the_headline() -> None:
    option = advise(predictor(), AdviceOptions(["io2"])).decision.option
    rows = [(row[0].text, row[-1].value or 0.0) for row in bill_table("", option, "USD").rows]
    parts = [amount for name, amount in rows if name != "in all"]
    total = next(amount for name, amount in rows if name == "in all")
    assert len(parts) == 3
    assert sum(parts) == pytest.approx(total) == pytest.approx(option.cost_per_month)


@pytest.mark.parametrize(
    ("price", "shown"), [(0.0, "0"), (0.08, "0.08"), (0.03185, "0.03185"), (1e-6, "1e-06")]
)
def test_the_price_of_one_is_shown_whatever_it_is(price: float, shown: str) -> None:
    bill = DeviceBill(device="gp3", per_month=0.0, parts=[bill_part("size", 1, price)])
    option = advise(predictor(), AdviceOptions(["io2"])).decision.option.changed(bills=[bill])
    assert bill_table("", option, "USD").rows[0][2].text == shown


@pytest.mark.parametrize(
    "terms", [{"years": -1.0}, {"headroom": float("nan")}, {"growth": -0.5}, {"have": "ssd-nvme-dc"}]
)
def test_terms_that_no_command_gives_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(TierwiseError):
        PaymentTerms(**terms)
