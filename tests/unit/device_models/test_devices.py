"""``tierwise device list`` and ``tierwise device show``: figures that come from the models."""

from __future__ import annotations

import json

import pytest

from support.commands import tierwise
from tierwise.device_models import device_simulation, profiles
from tierwise.device_models.device_simulation import DeviceSummary


def cli(*arguments: str) -> str:
    done = tierwise(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def summaries() -> dict[str, DeviceSummary]:
    summaries = device_simulation.summarize_devices(
        [profiles.load_profile(name) for name in profiles.profile_names()]
    )
    return {summary.name: summary for summary in summaries}


def test_every_profile_has_figures(summaries: dict[str, DeviceSummary]) -> None:
    assert list(summaries) == profiles.profile_names()
    for summary in summaries.values():
        if summary.name != "zero":
            numbers = summary.figures.model_dump()
            assert all(numbers[key] > 0 for key in numbers.keys() - {"cached_writes"}), summary.name
        assert 0 <= summary.sources.sourced_share <= 1


def test_figures_are_those_of_the_physics(summaries: dict[str, DeviceSummary]) -> None:
    disk = summaries["hdd-7k2"].figures
    # Without a write cache: a turn of 8.33 ms for each append.
    assert disk.write_flush_us == pytest.approx(60e6 / 7200, rel=0.05)
    # Seek and half a turn take 10 to 15 ms; sorting 32 of them gains a factor of 2 to 3.
    assert 60 < disk.random_read_iops < 100
    assert 1.8 < disk.random_read_qd32_iops / disk.random_read_iops < 4
    gp3 = summaries["volume-aws-gp3"].figures
    # Caps of the volume: 3,000 I/O per s and 125 MiB/s.
    assert gp3.random_read_qd32_iops == pytest.approx(3000, rel=0.03)
    assert gp3.sequential_read_mb_per_s == pytest.approx(131, rel=0.03)


def test_writes_into_a_cache_with_room_are_marked(summaries: dict[str, DeviceSummary]) -> None:
    cached = summaries["array-raid10-8x-hdd-7k2-20t-nearline"]
    assert cached.figures.cached_writes
    assert not summaries["hdd-7k2"].figures.cached_writes


def test_the_sources_of_members_count(summaries: dict[str, DeviceSummary]) -> None:
    array, member = summaries["array-raid1-2x-ssd-nvme-dc"].sources, summaries["ssd-nvme-dc"].sources
    assert array.estimated >= member.estimated


def test_the_list_is_for_people_and_for_programs(
    summaries: dict[str, DeviceSummary], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        device_simulation, "summarize_devices", lambda chosen: [summaries[profile.name] for profile in chosen]
    )
    names = [summary["name"] for summary in json.loads(cli("device", "list", "--format", "json"))["devices"]]
    assert names == profiles.profile_names()
    table = cli("device", "list")
    assert all(name in table for name in names)


def test_show_prints_the_whole_with_what_it_builds_on() -> None:
    shown = cli("device", "show", "array-raid1-2x-ssd-nvme-dc")
    assert profiles.load_profile("array-raid1-2x-ssd-nvme-dc").text in shown
    assert profiles.load_profile("ssd-nvme-dc").text in shown
    assert "4 KiB/s" in shown
