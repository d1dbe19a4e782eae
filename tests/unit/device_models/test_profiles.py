"""Profiles: those that ship are valid; bad ones are refused with file, key and fix."""

import pickle
from pathlib import Path

import pytest

from tierwise.device_models import profiles
from tierwise.model.errors import TierwiseError

NEEDED = [
    "hdd-10k-18g-fc",
    "hdd-10k-sas",
    "hdd-15k-sas",
    "hdd-7k2",
    "hdd-7k2-200g-ata",
    "hdd-7k2-20t-nearline",
    "hdd-7k2-sata-2009",
    "ram",
    "ssd-dram-fc",
    "ssd-dram-fc-64g",
    "ssd-nvme-dc",
    "ssd-sata-dc",
    "volume-aws-gp3",
    "volume-aws-gp3-16k",
    "volume-aws-io2",
    "volume-aws-sc1",
    "volume-aws-st1",
    "volume-azure-premium-v2",
    "volume-gcp-hyperdisk-balanced",
    "volume-gcp-pd-ssd",
    "zero",
]


def test_the_needed_profiles_ship() -> None:
    assert set(NEEDED) <= set(profiles.profile_names())


@pytest.mark.parametrize("name", profiles.profile_names())
def test_a_shipped_profile_loads(name: str) -> None:
    profile = profiles.load_profile(name)
    assert profile.name == name
    assert profile.kind in {"hdd", "ssd", "ram", "array", "volume"}
    assert profile.summary
    assert profile.capacity_bytes >= 8_000_000_000
    assert profile.sources


def test_the_write_cache_is_as_said() -> None:
    assert not profiles.load_profile("hdd-7k2").write_cache
    assert profiles.load_profile("hdd-7k2-sata-2009").write_cache


def test_a_volume_is_durable_and_has_the_fields_of_the_one_it_is_like() -> None:
    volume = profiles.load_profile("volume-aws-gp3-16k")
    assert (volume.kind, volume.write_cache) == ("volume", False)
    assert [base.name for base in volume.likes] == ["volume-aws-gp3"]
    assert volume.fields["limits"]["iops"]["provisioned"] == 16_000


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile("hdd-7k")
    assert "'hdd-7k'" in caught.value.message
    assert "hdd-7k2" in caught.value.fix
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile("GP3")
    assert "such as volume-aws-gp3" in caught.value.fix


def test_a_profile_is_loaded_by_path(tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(profiles.load_profile("ram").text)
    profile = profiles.load_profile(str(copy))
    assert (profile.name, profile.file) == ("mine", copy)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"none\.toml"):
        profiles.load_profile(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("old", "new", "message", "fix"),
    [
        ("rpm = 7200", "rpm = 0", "mechanics.rpm = 0 is impossible", "1000 to 30000"),
        ("rpm = 7200", "", "missing key mechanics.rpm", "add mechanics.rpm"),
        ("rpm = 7200", "rpm = 7200\nrmp = 1", "unknown key mechanics.rmp", "did you mean rpm? remove it"),
        ("rpm = 7200", 'rpm = "fast"', "mechanics.rpm is a string", "give a number"),
        ('"mechanics.rpm"', '"mechanics.rmp"', "mechanics.rpm has no source", "[source]"),
        ('kind = "hdd"', 'kind = "tape"', 'kind = "tape" is not known', "hdd, ssd, ram"),
    ],
)
def test_a_bad_profile_is_refused(tmp_path: Path, old: str, new: str, message: str, fix: str) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(profiles.load_profile("hdd-7k2").text.replace(old, new, 1))
    with pytest.raises(TierwiseError) as caught:
        profiles.load_profile(str(bad))
    assert str(bad) in caught.value.message
    assert message in caught.value.message
    assert fix in caught.value.fix
    assert "\n" not in str(caught.value)


def test_a_profile_at_an_end_of_its_ranges_is_made_again_from_its_texts() -> None:
    drive = profiles.load_profile("ssd-nvme-consumer")
    for end, number in zip(profiles.ENDS, drive.ranges["journal_us"], strict=True):
        again = pickle.loads(pickle.dumps(drive.at(end)))
        assert again.fields["journal_us"] == number
        assert again.fields["flush_us"] == drive.fields["flush_us"]
    steady = profiles.load_profile("ssd-nvme-dc")
    assert steady.at("slow") is steady


def test_an_array_has_the_ranges_of_its_member(tmp_path: Path) -> None:
    file = tmp_path / "pair.toml"
    text = profiles.load_profile("array-raid1-2x-ssd-nvme-dc").text
    file.write_text(text.replace('member = "ssd-nvme-dc"', 'member = "ssd-nvme-consumer"'))
    pair = profiles.load_profile(str(file))
    assert pair.ranges == profiles.load_profile("ssd-nvme-consumer").ranges
    slow = pair.at("slow").member
    assert slow is not None and slow.fields["journal_us"] == pair.ranges["journal_us"][1]


def test_each_end_of_several_ranges_is_fast_or_slow_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("""
        like = "ssd-nvme-consumer"
        read_us = 45
        channel_mb_per_s = 800
        [range]
        read_us = [40, 160]
        channel_mb_per_s = [200, 1600]
        [source]
        read_us = "estimated: for this test"
        channel_mb_per_s = "estimated: for this test"
        range = "estimated: for this test"
    """)
    keys = ("read_us", "channel_mb_per_s", "journal_us")
    ends = [[profiles.load_profile(str(file)).at(end).fields[key] for key in keys] for end in profiles.ENDS]
    assert ends == [[40, 1600, 600], [160, 200, 2600]]


def test_an_array_with_ranges_of_its_own_has_those_of_its_member_too(tmp_path: Path) -> None:
    file = tmp_path / "pair.toml"
    file.write_text("""
        kind = "array"
        summary = "two of them in stripes"
        member = "ssd-nvme-consumer"
        members = 2
        level = "raid0"
        stripe_kib = 64
        coupled = false
        [range]
        stripe_kib = [16, 64]
        [source]
        members = "by choice: two in this test"
        stripe_kib = "by choice: two in this test"
        range = "estimated: for this test"
    """)
    pair = profiles.load_profile(str(file))
    assert pair.ranges == {"journal_us": (600, 2600), "stripe_kib": (16, 64)}
    for end, journal_us, stripe_kib in (("fast", 600, 64), ("slow", 2600, 16)):
        there = pickle.loads(pickle.dumps(pair.at(end)))  # type: ignore[arg-type]
        assert there.fields["stripe_kib"] == stripe_kib
        assert there.member.fields["journal_us"] == journal_us


def test_an_array_of_arrays_has_the_ranges_of_the_innermost(tmp_path: Path) -> None:
    text = profiles.load_profile("array-raid1-2x-ssd-nvme-dc").text
    (tmp_path / "inner.toml").write_text(text.replace('"ssd-nvme-dc"', '"ssd-nvme-consumer"'))
    (tmp_path / "outer.toml").write_text(text.replace('"ssd-nvme-dc"', '"inner"'))
    slow = profiles.load_profile(str(tmp_path / "outer.toml")).at("slow")
    assert slow.member is not None and slow.member.member is not None
    assert slow.member.member.fields["journal_us"] == 2600
