"""Prices and bills: the file of prices, volumes as providers bill them, purchases, vacated volumes."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_replay import GB, FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise.advise import PaymentTerms
from tierwise.advise.costs import Bill, PlacementCosts, RecordedVolume, billing_notes, recorded_volumes
from tierwise.advise.durability import device_durability
from tierwise.device_models import profiles
from tierwise.device_models.prices import DevicePrice, PriceList, billed_gib, cost_per_month
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import money_sum, parse_monthly_amount
from tierwise.predict import Predictor
from tierwise.predict.named_devices import roles_lost_at_stop

PRICES = PriceList.read()
GIB = 1 << 30
TODAY = datetime.date(2026, 11, 23)
VOLUMES = [name for name in profiles.profile_names() if name.startswith("volume-")]
SIZES = st.integers(min_value=0, max_value=1 << 40)
OWN = """currency = "EUR"
[devices.gp3]
per_gib_month = 0.09394
source = "aws.eu/ebs/pricing"
date = 2026-11-01
"""


def test_an_entry_of_no_device_is_named(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(f"{OWN}{OWN.partition('[')[2].replace('devices.gp3', '[devices.volume-aws-gp9')}")
    (note,) = billing_notes(
        ["volume-aws-gp3"], PaymentTerms(prices=PriceList.read(file)), [], fake_predictor().run
    )
    assert note == f"{file}: [devices.volume-aws-gp9] is none of these devices, and has no effect"


@pytest.mark.parametrize(("each", "budget"), [((0.1, 0.2), 0.3), ((1.1, 2.2), 3.3)])
def test_a_budget_pays_for_devices_whose_prices_add_up_to_it(
    each: tuple[float, float], budget: float, tmp_path: Path
) -> None:
    """0.1 and 0.2 are above 0.3 in binary, and the same prices were refused."""
    devices = "volume-aws-gp3", "volume-azure-premium-v2"
    file = tmp_path / "prices.toml"
    entries = [
        f'[devices.{device}]\nper_gib_month = {price}\nsource = "the contract of 2026"\ndate = 2026\n'
        for device, price in zip(devices, each, strict=True)
    ]
    file.write_text('currency = "USD"\n' + "".join(entries).replace("2026\n", '"2026"\n'))
    costs = PlacementCosts({Role.LOG: GIB, Role.DATA: GIB}, PaymentTerms(prices=PriceList.read(file)))
    both = dict(zip((Role.LOG, Role.DATA), devices, strict=True))
    assert sum(each) > budget and costs.allows(both, budget)
    assert costs.cost_per_month(both) == budget and not costs.allows(both, budget - 0.01)


def price_of(name: str) -> DevicePrice:
    price = PRICES.of(profiles.load_profile(name))
    assert price
    return price


def cost(name: str, size_bytes: float, years: float = 5.0) -> float:
    cost = cost_per_month(profiles.load_profile(name), PRICES, size_bytes, years)
    assert cost is not None
    return cost


@pytest.mark.parametrize(
    ("name", "gib", "expected"),
    [
        ("gp3", 0.01, 0.08),
        ("gp3", 1.01, 2 * 0.08),
        ("gp3-16k", 0.01, 32 * 0.08 + 13_000 * 0.005 + 875 * 0.04),
        ("gp3-16k", 1024, 1024 * 0.08 + 13_000 * 0.005 + 875 * 0.04),
        ("gp3", 1024, 81.92),
        ("io2", 1024, 3664.0),
        ("sc1", 1024, 15.36),
        ("azure-premium-v2", 1024, 82.944),
        ("hyperdisk-balanced", 1024, 81.92),
        ("io2", 0.01, 64 * 0.125 + 32_000 * 0.065 + 32_000 * 0.0455),
        ("st1", 0.01, 1024 * 0.045),
        ("azure-premium-v2", 0.01, 0.081),
        ("hyperdisk-balanced", 0.01, 6 * 0.08),
        ("pd-ssd", 0.01, 1024 * 0.17),
        ("nvme-dc", 0.01, 10.0),
        ("array-raid1-2x-ssd-nvme-dc", 0.01, 20.0),
        ("array-raid0-100x-hdd-15k-sas", 1000, 100 * 280 / 60),
    ],
)
def test_a_month_costs_what_the_provider_bills(name: str, gib: float, expected: float) -> None:
    """Whole GiB; io2, gp3-16k and Hyperdisk as large as their I/Os, st1 and pd-ssd as their speed."""
    assert cost(name, gib * GIB) == pytest.approx(expected, rel=1e-5)


def test_a_mirror_of_volumes_is_paid_twice_and_a_small_one_at_the_least_size(
    tmp_path: Path,
) -> None:
    mirror = tmp_path / "pair.toml"
    mirror.write_text(
        'kind = "array"\nsummary = "two gp3"\nmember = "volume-aws-gp3"\nmembers = 2\nlevel = "raid1"\n'
        'coupled = false\n[source]\nmembers = "by choice, a mirror"\n'
    )
    assert cost(str(mirror), 10 * GIB) == pytest.approx(2 * cost("gp3", 10 * GIB))
    small = tmp_path / "small.toml"
    small.write_text(
        'like = "volume-aws-st1"\nsummary = "the smallest"\ncapacity_gib = 125\n'
        '[source]\ncapacity_gib = "by choice, the least"\n'
    )
    assert cost(str(small), 1) == pytest.approx(125 * 0.045)


@given(st.sampled_from(VOLUMES), SIZES, SIZES)
def test_rent_rises_with_size_in_whole_steps_from_the_least(name: str, first: int, other: int) -> None:
    profile, price = profiles.load_profile(name), price_of(name)
    small, large = sorted((first, other))
    assert cost(name, small) <= cost(name, large)
    gib = billed_gib(price, profile, small)
    assert gib >= max(price.least_gib, small / GIB) and gib % price.step_gib == 0
    assert cost(name, small) >= price.least_gib * (price.per_gib_month or 0)
    assert cost(name, small) == pytest.approx(cost(name, gib * GIB)), (
        "what is billed can be filled for nothing"
    )


@given(st.floats(min_value=0.5, max_value=20), st.floats(min_value=0.5, max_value=20))
def test_a_purchase_is_paid_once_over_its_years(years: float, other: float) -> None:
    assert cost("nvme-dc", GIB, years) * years == pytest.approx(cost("nvme-dc", GIB, other) * other)


FOOTPRINTS = {Role.LOG: GB, Role.DATA: 40 * GB, Role.INDEX: 10 * GB, Role.SYSTEM: GB}
PLACES = st.dictionaries(
    st.sampled_from([Role.LOG, Role.DATA, Role.INDEX]),
    st.sampled_from(["volume-aws-gp3", "ssd-nvme-dc", "volume-aws-io2", "recorded"]),
)


def test_an_array_of_memory_loses_its_files_as_memory_does(tmp_path: Path) -> None:
    array = tmp_path / "array.toml"
    mirror = (profiles.FOLDER / "array-raid1-2x-ssd-nvme-dc.toml").read_text()
    array.write_text(mirror.replace('member = "ssd-nvme-dc"', 'member = "ram"'))
    assert roles_lost_at_stop({Role.LOG: str(array)}) == [Role.LOG]
    assert device_durability({Role.LOG: str(array)})[0].fact == "memory: nothing survives a power cut"


def test_idle_files_that_must_last_are_not_taken_along_to_memory() -> None:
    sizes = {Role.TEMP: GB, Role.DATA: GB}
    volume = RecordedVolume("volume-aws-io2", frozenset(sizes), 4000.0)

    def bill(device: str, **terms: bool) -> Bill:
        return PlacementCosts(sizes, PaymentTerms(**terms), [volume], {Role.DATA}).bill({Role.TEMP: device})

    assert bill("ssd-nvme-dc").taken_along == {Role.DATA: "ssd-nvme-dc"}
    assert not bill("ram").taken_along and not bill("ram").credit_per_month
    assert bill("ram", rebuildable=True).taken_along == {Role.DATA: "ram"}


@given(PLACES, st.floats(min_value=0.01, max_value=10_000), st.floats(0, 3))
def test_a_credit_is_the_rent_at_most_and_never_makes_it_dearer(
    placement: dict[Role, str], rent: float, headroom: float
) -> None:
    volume = RecordedVolume("volume-aws-io2", frozenset(FOOTPRINTS), rent)
    terms = PaymentTerms(headroom=headroom)
    costs = PlacementCosts(FOOTPRINTS, terms, [volume], {Role.SYSTEM})
    bill = costs.bill(placement)
    plain = PlacementCosts(FOOTPRINTS, terms).cost_per_month(placement)
    assert bill.credit_per_month in (0, rent)
    assert money_sum((plain, -rent)) <= bill.cost_per_month <= plain
    moved = {role for role, device in placement.items() if device != "recorded"}
    if len(moved) < 3:
        assert bill.credit_per_month == 0, "a volume that still holds files is paid for"
    assert (bill.credit_per_month > 0) == bool(bill.taken_along)
    assert PlacementCosts(FOOTPRINTS).cost_per_month(placement) <= plain


def test_what_is_owned_costs_nothing_and_a_second_of_its_kind_does() -> None:
    costs = PlacementCosts(FOOTPRINTS, PaymentTerms.parse(have="nvme-dc"))
    assert costs.cost_per_month({Role.LOG: "ssd-nvme-dc"}) == 0
    assert costs.cost_per_month({Role.LOG: "ssd-nvme-dc#2"}) == pytest.approx(10)


def test_a_device_has_to_hold_the_files_with_headroom_when_they_have_grown() -> None:
    costs = PlacementCosts(FOOTPRINTS, PaymentTerms.parse(headroom="30%", growth="100%"))
    assert PaymentTerms.parse(growth="2") == PaymentTerms.parse(growth="100%")
    gib = 40 * GB * 2.6 / GIB
    assert costs.cost_per_month({Role.DATA: "volume-aws-gp3"}) == pytest.approx(0.08 * -(-gib // 1))
    assert not costs.fits({Role.DATA: "ssd-sata-slc-2008-64g"}) and PlacementCosts(FOOTPRINTS).fits(
        {Role.DATA: "ssd-sata-slc-2008-64g"}
    )


@pytest.mark.parametrize(
    ("limits", "largest_gib"),
    [("step_gib = 8\nmost_gib = 12", 8), ("least_gib = 0.1\nstep_gib = 0.1\nmost_gib = 0.3", 0.3)],
)
def test_no_volume_is_larger_than_the_provider_sells(tmp_path: Path, limits: str, largest_gib: float) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"{OWN}{limits}\n")
    costs = PlacementCosts(FOOTPRINTS, PaymentTerms(prices=PriceList.read(file)))
    assert costs.most_bytes("volume-aws-gp3") == pytest.approx(largest_gib * GIB)
    file.write_text(f"{OWN}{limits}\n".replace("gp3", "io2"))
    too_slow = PlacementCosts(FOOTPRINTS, PaymentTerms(prices=PriceList.read(file)))
    assert not too_slow.holds("volume-aws-io2", 1), "64,000 I/Os a second need 64 GiB"


@pytest.mark.parametrize(("level", "sides"), [("raid0", 4), ("raid10", 2)])
def test_no_member_of_an_array_is_larger_than_the_provider_sells(
    tmp_path: Path, level: str, sides: int
) -> None:
    (tmp_path / "large.toml").write_text(
        'like = "volume-aws-gp3"\ncapacity_gib = 1_000_000\n[source]\ncapacity_gib = "by choice: large"\n'
    )
    array = tmp_path / "array.toml"
    array.write_text(
        f'kind = "array"\nsummary = "four volumes"\nmember = "large"\nmembers = 4\nlevel = "{level}"\n'
        'stripe_kib = 64\ncoupled = false\n[source]\nmembers = "by choice: four of them"\n'
        'stripe_kib = "by choice: four of them"\n'
    )
    costs = PlacementCosts(FOOTPRINTS, PaymentTerms.parse(headroom="100%"))
    for name, of_65536 in ((str(tmp_path / "large.toml"), 1), (str(array), sides)):
        assert costs.most_bytes(name) == pytest.approx(of_65536 * 65_536 * GIB / 2, rel=1e-6)


def device(mount: str, roles: list[str], shared: int = 1) -> dict[str, object]:
    """A block device of 100 GiB, as a recording describes it."""
    named = {"name": "nvme1n1", "major": 259, "minor": 1, "mount": mount, "roles": roles, "shared": shared}
    return named | {"first_sector": 0, "sectors": 100 * GIB // 512, "profile": None, "write_cache": False}


def recorded(*devices: dict[str, object]) -> Predictor:
    return fake_predictor(devices=devices)


def test_the_recorded_volume_is_known_by_its_name_and_size() -> None:
    of = recorded(device("/pg", ["log", "data", "index", "temp"]))
    assert recorded_volumes(of, PaymentTerms()) == []
    (volume,) = recorded_volumes(of, PaymentTerms.parse(recorded_on="gp3"))
    assert (volume.device, volume.rent_per_month) == ("volume-aws-gp3", pytest.approx(100 * 0.08))
    assert recorded_volumes(of, PaymentTerms.parse(recorded_on="nvme-dc")) == [], "what is bought has no rent"
    assert recorded_volumes(of, PaymentTerms.parse(recorded_on="gp3", have="gp3")) == []
    with pytest.raises(TierwiseError, match=r"--recorded-on: .* were recorded on one device"):
        recorded_volumes(of, PaymentTerms.parse(recorded_on="log=io2,all=gp3"))
    whole = recorded(device("/", []), device("/pg", ["log", "data", "index", "temp"]))
    assert recorded_volumes(whole, PaymentTerms.parse(recorded_on="gp3")) == [], "the operating system stays"


@pytest.mark.parametrize("name", ["volume-aws-gp3", "ssd-nvme-consumer"])
def test_rent_and_wear_of_what_was_an_emulated_disk_of_another_kind_are_doubted(name: str) -> None:
    """Rent was credited, and a drive was said to be worn out, without a word."""
    terms, roles = PaymentTerms.parse(recorded_on=name), ["log", "data", "index", "temp"]

    def notes(profile: str | None) -> list[str]:
        fake = FakeReplay(devices=[{"profile": profile, "roles": roles}])
        of = fake_predictor(fake, devices=[device("/pg", roles)])
        found = billing_notes([], terms, recorded_volumes(of, terms), of.run)
        return [note for note in found if not note.startswith("no recorded volume is credited")]

    (note,) = notes("hdd-7k2")
    assert note.endswith("data, index, log, temp were recorded on an emulated disk of another kind: hdd-7k2")
    assert notes(None) == notes(profiles.load_profile(name).summary) == []


def test_a_new_device_of_the_recorded_type_is_said_to_be_another() -> None:
    """Advice to move data from a gp3 to a gp3 read as if nothing moved."""
    roles = ["log", "data", "index", "temp"]
    of = fake_predictor(
        FakeReplay(devices=[{"profile": None, "roles": roles}]), devices=[device("/pg", roles)]
    )
    terms = PaymentTerms.parse(recorded_on="gp3")
    (note,) = billing_notes(["volume-aws-gp3", "ssd-nvme-dc"], terms, recorded_volumes(of, terms), of.run)
    assert note.startswith("volume-aws-gp3: a further device of the type that was recorded")


def test_a_recorded_volume_without_a_price_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    terms = PaymentTerms.parse(prices=file, recorded_on="log=io2,all=gp3")
    real = FakeReplay(devices=[{"profile": None, "roles": ["log", "data"]}])
    note, further = billing_notes(["volume-aws-gp3"], terms, [], fake_predictor(real).run)
    assert further.startswith("volume-aws-gp3: a further device")
    assert note.startswith("volume-aws-io2 has no price in EUR, so that no rent of it ends: add")


def test_a_file_of_prices_replaces_those_that_ship_entry_by_entry(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN.replace("EUR", "USD"))
    mixed = PriceList.read(file)
    assert cost_per_month(profiles.load_profile("gp3"), mixed, GIB) == pytest.approx(0.09394)
    assert cost_per_month(profiles.load_profile("nvme-dc"), mixed, GIB) == pytest.approx(10)
    file.write_text(OWN)
    euros = PriceList.read(file)
    assert (euros.currency, cost_per_month(profiles.load_profile("nvme-dc"), euros, GIB)) == ("EUR", None)
    with pytest.raises(TierwiseError, match="nvme-dc has no price in EUR") as caught:
        PlacementCosts(FOOTPRINTS, PaymentTerms(prices=euros)).cost_per_month({Role.LOG: "ssd-nvme-dc"})
    assert "[devices.ssd-nvme-dc]" in caught.value.fix
    own = Path(shutil.copy(profiles.FOLDER / "ram.toml", tmp_path / "own.toml"))
    own.write_text(
        own.read_text().replace("[source]", '[price]\nusd = 1\n[source]\nprice = "an invoice of 2026"')
    )
    with pytest.raises(TierwiseError, match=r"own.toml: \[price\] is in USD, the other prices are in EUR"):
        euros.of(profiles.load_profile(str(own)))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "per_gib_month = 0.09394",
            "per_gib_month = -1",
            "devices.gp3.per_gib_month: .* greater than or equal to 0",
        ),
        ("per_gib_month = 0.09394", "per_gib_month = nan", "devices.gp3.per_gib_month"),
        ("per_gib_month = 0.09394", 'per_gib_month = "0.09"', "devices.gp3.per_gib_month"),
        ("per_gib_month = 0.09394", "purchase = 3\nper_gib_month = 1", "devices.gp3: give one of"),
        ("per_gib_month = 0.09394", "purchase = 3\nleast_gib = 1", "least_gib belongs to a rented device"),
        ("per_gib_month", "per_gb_month", "per_gb_month: no such field; did you mean per_gib_month"),
        ("source", "step_gib = 1e-300\nsource", "devices.gp3.step_gib"),
        ("source", 'currency = "USD"\nsource', "devices.gp3.currency: .* give one currency"),
        ('"EUR"', '"euro"', "currency: String should match"),
        ("2026-11-01", "2999-01-01", "date 2999-01-01 has not come"),
        ("2026-11-01", '"2026-13"', "devices.gp3: month must be in 1..12"),
        ("2026-11-01", '"last week"', "devices.gp3.date"),
        ("[devices.gp3]", "[devices.volume-aws-gp3]\n[devices.gp3]", "devices.volume-aws-gp3"),
        ("[devices", "[[devices", "Expected"),
    ],
)
def test_a_file_of_prices_that_is_wrong_is_refused_with_file_and_field(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    file = tmp_path / "mine.toml"
    assert old in OWN
    file.write_text(OWN.replace(old, new, 1))
    with pytest.raises(TierwiseError, match=f"^{file}: .*{says}"):
        PriceList.read(file)


@pytest.mark.parametrize(
    ("date", "stale"), [("2025-11-22", True), ("2025-11-23", False), ("2025", True), ("2026", False)]
)
def test_a_price_is_stale_after_a_year_counted_from_the_first_day_it_may_be_of(
    date: str, stale: bool
) -> None:
    price = PRICES.shipped["volume-aws-gp3"].model_copy(update={"date": date})
    assert price.is_stale(TODAY) == stale


def test_every_shipped_device_but_the_unreal_one_has_one_price_in_one_place() -> None:
    for name in profiles.profile_names():
        profile = profiles.load_profile(name)
        assert "price" not in profile.fields, name
        assert (cost_per_month(profile, PRICES, GIB) is None) == (name == "zero"), name
    assert set(PRICES.shipped) <= set(profiles.profile_names())


@pytest.mark.parametrize("text", ["50/month", "50", "€50", "50 EUR/month", "50€/mo"])
def test_a_budget_is_in_the_currency_of_the_prices(text: str) -> None:
    assert parse_monthly_amount(text, "--budget", "EUR") == 50
    if text not in ("50", "50/month"):
        with pytest.raises(TierwiseError, match=r"--budget: .* the prices are in USD"):
            parse_monthly_amount(text, "--budget", "USD")


@pytest.mark.parametrize(
    "terms",
    [
        {"headroom": "30"},
        {"growth": "-1%"},
        {"growth": "0.5"},
        {"years": 0.0},
        {"years": float("nan")},
        {"have": "nope-nope"},
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, str]) -> None:
    with pytest.raises(TierwiseError):
        PaymentTerms.parse(**terms)  # type: ignore[arg-type]
