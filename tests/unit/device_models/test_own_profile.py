"""A user's own profile: found by its path, never mistaken for one that ships. The simulator is a fake."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import FakeReplay, predictor
from tierwise.advise import AdviceOptions, Terms, advise
from tierwise.device_models import profiles
from tierwise.device_models.prices import Prices
from tierwise.model.errors import TierwiseError
from tierwise.predict import Scenario, resolve
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
    assert resolve(f"{name}#2").name == f"{mine.resolve()}#2"


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
        profiles.load(str(file))
    assert caught.value.message == f"{file}: {written} is not a known profile"
    assert caught.value.fix == fix


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
    own, other = resolve(str(copy)), resolve("hdd-7k2")
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
        Prices.read().of(profiles.load(str(both)))


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
    advice = advise(predictor(), AdviceOptions([], terms=Terms.parse(have="./mine.toml")))
    assert advice.devices == [str(mine.resolve())]
    assert advice.best and advice.best.cost_per_month == 0
