"""A price that nobody compared with its source is said to be so, wherever it is used."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.device_models.prices import SHIPPED, PriceList
from tierwise.report.document import Text
from tierwise.report.recording.advice_report import advice_document

OWN = 'currency = "USD"\n[devices.nvme-dc]\npurchase = 480\nsource = "offer of a dealer"\ndate = "2026-01"\n'


def test_no_shipped_price_from_memory_counts_as_checked() -> None:
    entries = tomllib.loads(SHIPPED.read_text("utf-8"))["devices"]
    assert all(isinstance(entry["checked"], bool) for entry in entries.values())
    unsure = ("from memory", "not checked", "estimated")
    for name, entry in entries.items():
        assert not (entry["checked"] and any(word in entry["source"] for word in unsure)), name


@pytest.mark.parametrize("arguments", [["list"], ["show", "gp3"], ["show", "array-raid1-2x-ssd-nvme-dc"]])
def test_the_list_of_devices_says_it(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if arguments == ["list"]:  # each takes its time to simulate
        monkeypatch.setattr(profiles, "profile_names", lambda: ["volume-aws-gp3", "ssd-nvme-dc"])
    shown = CliRunner().invoke(app, ["device", *arguments], env={"COLUMNS": "200"}).stdout
    assert "not checked" in shown and "nobody compared it with the source" in shown
    content = json.loads(CliRunner().invoke(app, ["device", *arguments, "--format", "json"]).stdout)
    unchecked = [
        device for device in content["devices"] if device["price_source"] and not device["price_checked"]
    ]
    assert unchecked and all(device["cost_per_gb_month"] for device in unchecked)


def test_a_measured_profile_without_a_price_is_not_said_to_be_from_memory(tmp_path: Path) -> None:
    made = tmp_path / "mine.toml"
    sizes = {"capacity_mb": 1000, "channels": 1, "stripe_kib": 32, "read_us": 20, "program_us": 20}
    sizes |= {"read_overhead_us": 45, "write_overhead_us": 137, "flush_us": 133, "link_mb_per_s": 750}
    sizes["write_cache_kib"] = 0
    numbers = "\n".join(f"{name} = {value}" for name, value in sizes.items())
    sources = "\n".join(f'{name} = "measured: here"' for name in sizes)
    head = 'kind = "ssd"\nsummary = "mine"\npower_loss_protection = false'
    made.write_text(f"{head}\n{numbers}\n[source]\n{sources}\n")
    shown = CliRunner().invoke(app, ["device", "show", str(made)])
    assert shown.exit_code == 0, shown.exception
    assert "not checked" not in shown.stdout.lower()


@pytest.mark.parametrize("devices", [["nvme-dc"], ["gp3", "io2"]])
def test_advice_says_it_of_the_devices_that_it_prices(devices: list[str]) -> None:
    advice = advise(predictor(), AdviceOptions(devices))
    assert all(not price.checked for price in advice.prices)
    text = " ".join(block.text for block in advice_document(advice) if isinstance(block, Text))
    assert "Prices that nobody checked against their source: " in text and ", not checked): " in text


@pytest.mark.parametrize(
    ("line", "checked"), [("", True), ("checked = true\n", True), ("checked = false\n", False)]
)
def test_a_price_of_one_s_own_is_checked_unless_it_says_otherwise(
    line: str, checked: bool, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN + line)
    (price,) = PriceList.read(file).own.values()
    assert price.checked == checked
    advice = advise(predictor(), AdviceOptions(["nvme-dc"], terms=PaymentTerms.parse(prices=file)))
    assert [price.checked for price in advice.prices] == [checked]
