"""A user's own profile: found by its path, never mistaken for one that ships. The simulator is a fake."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import FakeReplay, predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import summarize_devices
from tierwise.device_models.prices import PriceList
from tierwise.model.errors import TierwiseError
from tierwise.predict import Scenario, resolve_device
from tierwise.predict.replayer import Replayer, SimulationRequest

RUNNER = CliRunner()


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile of our own in the working directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(profiles.FOLDER / "ssd-nvme-dc.toml", tmp_path / "mine.toml"))


@pytest.mark.parametrize("written", ["mine.toml", "./mine.toml", "{absolute}"])
def test_it_is_found_by_any_path(mine: Path, written: str) -> None:
    name = written.format(absolute=mine)
    (answer,) = predictor().predict([Scenario(placement={"log": name})])
    assert answer.rate_per_s
    assert {load.device for role, load in answer.io.items() if role == "log"} == {str(mine.resolve())}
    assert resolve_device(f"{name}#2").name == f"{mine.resolve()}#2"


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ('like = "base.toml"', 'write like = "base", which is base.toml beside this file'),
        ('member = "./base.toml"', 'write member = "base", which is base.toml beside this file'),
        ('like = "nvme-dc"', 'write like = "ssd-nvme-dc"'),
        ('like = ""', "name a profile that ships, or a TOML file beside this one"),
    ],
)
def test_a_profile_that_refers_to_none_says_how_to_name_one(written: str, fix: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(written, "utf-8")
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile(str(file))
    assert caught.value.message == f"{file}: {written} is not a known profile"
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("like", "written", "message", "fix"),
    [
        ("ssd-nvme-dc", "read_ms = 66", "unknown key read_ms", "did you mean read_us? remove it"),
        ("ssd-nvme-dc", "read_us = 66", "read_us has no source", 'add "read_us"'),
        ("ssd-nvme-dc", "range.read_us = [1, 2]", "range.read_us has no source", 'add "range.read_us"'),
        ("volume-aws-gp3", "limits.iops.mst = 9", "unknown key limits.iops.mst", "mean most?"),
        ("volume-aws-gp3", "limits.mib_per_s.most = 9", "limits.mb_per_s.most has no source", "add "),
        ("mine", "foo = 1", "foo has no source", "add "),
    ],
)
def test_an_unknown_key_beside_like_is_named_with_a_known_one(
    like: str, written: str, message: str, fix: str, tmp_path: Path
) -> None:
    """It was said to have no source."""
    file = tmp_path / "mine.toml"
    file.write_text(f'like = "{like}"\n{written}\n', "utf-8")
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile(str(file))
    assert caught.value.message == f"{file}: {message}" and fix in caught.value.fix


@pytest.mark.parametrize("asked", ["base.toml", "mine.toml"])
def test_a_syntax_error_does_not_print_the_line(asked: str, tmp_path: Path) -> None:
    """It may be a password that was written without quotes, or very long."""
    (tmp_path / "base.toml").write_text("kind = hunter2", "utf-8")
    (tmp_path / "mine.toml").write_text('like = "base"', "utf-8")
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile(str(tmp_path / asked))
    assert caught.value.message == f"{tmp_path / 'base.toml'}: Invalid value (at line 1, column 8)"


def test_it_is_read_before_anything_is_replayed(mine: Path) -> None:
    with pytest.raises(TierwiseError, match="No such file"):
        Scenario(placement={"log": "./missing.toml"})
    scenario = Scenario(placement={"log": "./mine.toml"})
    mine.unlink()
    os.chdir(mine.parent)
    (answer,) = predictor().predict([scenario])
    assert answer.rate_per_s


def test_a_copy_that_keeps_its_name_is_itself(tmp_path: Path) -> None:
    shipped = profiles.FOLDER / "hdd-7k2.toml"
    copy = tmp_path / "hdd-7k2.toml"
    text = shipped.read_text("utf-8").replace("write_cache = false", "write_cache = true")
    assert text != shipped.read_text("utf-8")
    copy.write_text(text, "utf-8")
    own, other = resolve_device(str(copy)), resolve_device("hdd-7k2")
    assert (own.profile.write_cache, other.profile.write_cache) == (True, False)
    assert own.name == str(copy.resolve()) != other.name


def test_both_are_devices_of_one_scenario(tmp_path: Path) -> None:
    copy = Path(shutil.copy(profiles.FOLDER / "hdd-7k2.toml", tmp_path / "hdd-7k2.toml"))
    fake = FakeReplay()
    given: list[str] = []
    inner = fake.predict

    def seen(scenarios: str, devices: object, threads: int) -> str:
        given.extend(f"{device}" for device in devices)  # type: ignore[attr-defined]
        return inner(scenarios, devices, threads)  # type: ignore[arg-type]

    fake.predict = seen  # type: ignore[method-assign, assignment]
    Replayer(fake).ask([SimulationRequest(Scenario(placement={"log": str(copy), "data": "hdd-7k2"}), 0)])
    assert len(given) == 2


def test_a_price_of_a_bought_and_of_a_rented_device_is_none(tmp_path: Path) -> None:
    """The rent counted, and the purchase went without a word."""
    both = tmp_path / "both.toml"
    price = "[price]\nusd = 900\nusd_per_gb_month = 1\n"
    both.write_text(f'like = "ssd-nvme-dc"\n{price}[source]\nprice = "invoice of 2026-03-14"\n', "utf-8")
    with pytest.raises(TierwiseError, match=r"both\.toml: price\.usd .* price\.usd_per_gb_month .* rented"):
        PriceList.read().of(profiles.load_profile(str(both)))


def test_a_purchase_price_is_of_one_capacity(tmp_path: Path) -> None:
    """A drive of 8 TB that is like one of 2 TB had the price of the smaller one."""
    text = 'like = "{}"\n{}[source]\n{} = "by choice, for this test"\n'
    own = tmp_path / "own.toml"
    own.write_text(text.format("ssd-nvme-dc", "[price]\nusd = 100\n", "price"), "utf-8")
    other = tmp_path / "other.toml"
    for like in ("ssd-nvme-dc", "own"):
        for capacity_mb, priced in ((2_000_000, True), (8_000_000, False)):
            other.write_text(text.format(like, f"capacity_mb = {capacity_mb}\n", "capacity_mb"), "utf-8")
            assert (PriceList.read().of(profiles.load_profile(str(other))) is not None) is priced


@pytest.mark.parametrize(("capacity_mb", "priced"), [(2_000_000, True), (20_000_000, False)])
def test_a_file_with_the_name_of_a_shipped_profile_has_its_price_for_its_capacity_alone(
    capacity_mb: int, priced: bool, tmp_path: Path
) -> None:
    """A drive of 20 TB cost the 600 USD of the one of 2 TB."""
    own = tmp_path / "ssd-nvme-dc.toml"
    source = '[source]\ncapacity_mb = "by choice, for this test"\n'
    own.write_text(f'like = "ssd-nvme-dc-2020"\ncapacity_mb = {capacity_mb}\n{source}', "utf-8")
    assert (PriceList.read().of(profiles.load_profile(str(own))) is not None) is priced


def test_the_price_of_an_array_of_arrays_has_its_source(tmp_path: Path) -> None:
    """It had none: only the price of a member was looked for, not that of a member's member."""
    array = tmp_path / "arrays.toml"
    text = (profiles.FOLDER / "array-raid1-2x-ssd-nvme-dc.toml").read_text("utf-8")
    array.write_text(text.replace('member = "ssd-nvme-dc"', 'member = "array-raid1-2x-ssd-nvme-dc"'), "utf-8")
    (summary,) = summarize_devices([profiles.load_profile(str(array))])
    assert summary.cost_per_gb_month and summary.price_source.startswith("estimated: 0.30 USD a GB")


def test_it_can_be_advised_at_its_own_price(mine: Path) -> None:
    with pytest.raises(TierwiseError, match=r"mine\.toml has no price in USD"):
        advise(predictor(), AdviceOptions(["./mine.toml"]))
    own = mine.with_name("own.toml")
    own.write_text('like = "mine"\n[price]\nusd = 1200\n[source]\nprice = "invoice of 2026-03-14"\n', "utf-8")
    bought = advise(predictor(), AdviceOptions(["./own.toml"]))
    assert bought.best
    (worn,) = bought.best.wear
    purchases = max(1.0, 60 / worn.months) if worn.months else 1.0
    assert bought.best.cost_per_month == pytest.approx(20 * purchases)
    assert (bought.prices[0].source, bought.prices[0].stale) == ("invoice of 2026-03-14", False)
    advice = advise(predictor(), AdviceOptions([], terms=PaymentTerms.parse(have="./mine.toml")))
    assert advice.devices == [str(mine.resolve())]
    assert advice.best and advice.best.cost_per_month == 0
