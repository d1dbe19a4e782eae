"""What a gain may cost where there is no budget: as much as from more machines, with what these cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fake_replay import predictor
from tierwise.advise import Advice, AdviceOptions, PaymentTerms, advise
from tierwise.device_models.instances import CloudInstance, instance_rent_per_month
from tierwise.model.units import GIB
from tierwise.report.recording.advice_report import fastest_sentence, too_dear_sentence

VOLUME = {"name": "nvme1n1", "major": 259, "minor": 1, "mount": "/pg", "shared": 1, "first_sector": 0}


def advice(file: Path, sata: int, nvme: int, *, now: int = 0, currency: str = "USD") -> Advice:
    """The advice where the drives cost so much a month, and the recorded volume of 100 GiB."""
    amounts = {"ssd-sata-dc": f"purchase = {60 * sata}", "ssd-nvme-dc": f"purchase = {60 * nvme}"}
    amounts["volume-aws-gp3"] = f"per_gib_month = {now / 100}"
    source = 'source = "our supplier"\ndate = "2026"\n'
    tables = [f"[devices.{name}]\n{amount}\n{source}" for name, amount in amounts.items()]
    file.write_text(f'currency = "{currency}"\n{"".join(tables)}')
    whole = VOLUME | {"roles": ["log", "data", "index", "temp"], "sectors": 100 * GIB // 512}
    devices = [whole | {"profile": None, "write_cache": False}]
    of = predictor(devices=devices)
    terms = PaymentTerms.parse(prices=file, recorded_on="gp3" if now else "")
    return advise(of, AdviceOptions(["sata-dc", "nvme-dc"], terms=terms))


@pytest.mark.parametrize("now", [0, 1000])
@pytest.mark.parametrize(("nvme", "device"), [(1000, "ssd-nvme-dc"), (1300, "ssd-sata-dc")])
def test_a_machine_counts_with_all_its_storage(nvme: int, device: str, now: int, tmp_path: Path) -> None:
    # The other drive costs 455 with its wear; 2.4 times its work is worth 1.4 * (70 + 455) more.
    answer = advice(tmp_path / "prices.toml", 100, nvme, now=now)
    assert set(answer.decision.option.placement.values()) == {device}


def test_where_nothing_is_worth_its_price_the_cheapest_that_helps_is_advised(tmp_path: Path) -> None:
    answer = advice(tmp_path / "prices.toml", 2_000, 200_000)
    assert set(answer.decision.option.placement.values()) == {"ssd-sata-dc"}
    assert "if the work can be parted: --budget allows what this costs." in fastest_sentence(answer)
    same = advice(tmp_path / "prices.toml", 200_000, 200_000)
    assert same.decision.option.cost_per_month == pytest.approx(200_000)
    assert too_dear_sentence(same).startswith(
        "Nothing cheaper helps, but this is dear. More machines gain as much"
    )
    assert too_dear_sentence(same.changed(budget_per_month=1e6)) == ""


def test_no_rent_is_no_bound_and_the_answer_says_so(tmp_path: Path) -> None:
    free = CloudInstance(name="own", iops=1e5, mb_per_s=1e3, per_month=0, source="our own machine")
    assert (
        instance_rent_per_month([free], 2, "USD")
        == instance_rent_per_month([], 2, "USD")
        == pytest.approx(70.08)
    )
    other = free.changed(per_month=55, currency="EUR", vcpus=4)
    assert (
        instance_rent_per_month([other], 2, "USD") == pytest.approx(140.16)
        and instance_rent_per_month([other], 2, "EUR") == 55
    )
    assert instance_rent_per_month([free], 2, "EUR") is None
    answer = advice(tmp_path / "prices.toml", 1000, 200_000, currency="EUR")
    assert set(answer.decision.option.placement.values()) == {"ssd-nvme-dc"}
    assert any("no rent of a machine is known in EUR" in note for note in answer.notes)
    assert not any("no rent" in note for note in advise(predictor(), AdviceOptions(["gp3"])).notes)
