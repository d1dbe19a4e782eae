"""A profile that is fitted to a modelled device serves what was measured of that device at the same rates."""

from __future__ import annotations

import itertools
import re
import statistics
import tomllib
from pathlib import Path
from random import Random

import pytest

from support.eight_units import eight_units
from support.virtual_target import VirtualTarget
from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.profiles import Profile
from tierwise.device_models.simulation import Job, simulate
from tierwise.model.statistics import Interval
from tierwise.predict.devices import is_ephemeral, is_memory
from tierwise.probe import Options, flash_fit, samples
from tierwise.probe.flush import check_flush
from tierwise.probe.measure import contradictions, fitted, flush_times
from tierwise.probe.place import Place
from tierwise.probe.profile_text import Origin, flash_text
from tierwise.probe.samples import CRYSTALDISKMARK, appends, flush_ends_us, sample_patterns
from tierwise.results.measurements import PatternResult

OPTIONS = Options(seconds=12, repeats=1, destroy=True, fill=False)
RANDOM = [name for name in CRYSTALDISKMARK.values() if name.startswith("rnd")]
LARGE = ["seq1m-q8t1-read", "seq1m-q8t1-write"]
DEEP = ["randread-4k-qd64", "randwrite-4k-qd64"]
HEAVY_TAIL = """
kind = "volume"
summary = "a median of 100 us and a mean of three times that"
capacity_gib = 10

[latency]
read_p50_us = 100
read_p99_us = 3000
write_p50_us = 120
write_p99_us = 5000
flush_us = 5
transfer_mb_per_s = 2000

[limits]
window_us = 100_000

[limits.iops]
most = {iops}

[limits.mb_per_s]
most = 500

[source]
capacity_gib = "by choice, for this test"
latency = "by choice, for this test"
limits = "by choice, for this test"
"""


def device(name: str) -> Profile:
    if name.startswith("heavy-tail-"):
        text = HEAVY_TAIL.format(iops=name.removeprefix("heavy-tail-"))
        return profiles.parse(text, Path(f"{name}.toml"))
    return profiles.load(name)


def refit(
    profile: Profile, *, memory: bool = False
) -> tuple[Profile, dict[str, list[PatternResult]], list[str]]:
    """The profile that a probe of the device writes, what it measured, and where the two differ."""
    # The target has a probe's methods, not its type.
    target: _core.ProbeTarget = VirtualTarget(profile)  # type: ignore[assignment]
    random = Random(1)
    write_cache = "write back" if profile.write_cache else "write through"
    place = Place(Path("/mnt"), "sda", "ext4", memory, False, False, write_cache, False, 1, "")
    patterns = sample_patterns(
        target, list(CRYSTALDISKMARK.values()), OPTIONS.repeats, 6, random, lambda _: None
    )
    flush = check_flush(flush_times(target, OPTIONS, random), place)
    origin = Origin(
        "2026-11-29", "db1", "6.1", "/data", "/data", OPTIONS.repeats, profile.capacity_bytes, memory
    )
    text, apart = fitted(target, patterns, flush, origin, OPTIONS, random)
    return profiles.parse(text, Path("fitted.toml")), patterns, apart


def append_us(profile: Profile) -> float:
    """Mean time of an append of 8 KiB with its flush."""
    target: _core.ProbeTarget = VirtualTarget(profile)  # type: ignore[assignment]
    ends_us = flush_ends_us(target, appends(target, 8192, Random(3)), 10)
    return float(ends_us[-1] - ends_us[0]) / (len(ends_us) - 1)


@pytest.fixture(autouse=True)
def _no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time has no processor time of a host, and no rest."""
    monkeypatch.setattr(samples.time, "process_time", lambda: 0.0)
    monkeypatch.setattr(samples.time, "sleep", lambda _: None)


def test_processor_time_that_passes_while_the_device_works_is_the_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest that hands a request to its hypervisor is charged for that: 40 us of reads of 41 us."""
    monkeypatch.setattr(samples.time, "process_time", itertools.count(0, 1000).__next__)
    fitted_profile, patterns, apart = refit(device("ssd-nvme-dc"))
    (measured,) = patterns["rnd4k-q1t1-read"]
    modelled = simulate(fitted_profile, Job(preset="rnd4k-q1t1-read", count=1000)).iops
    assert measured.rate_per_s < modelled < 1.05 * measured.rate_per_s
    assert apart == []


@pytest.mark.parametrize(
    "name",
    [
        "ssd-nvme-dc",
        "ssd-nvme-consumer",
        "ssd-sata-consumer",
        "ssd-sata-slc-2008",
        "volume-aws-gp3",
        "volume-aws-io2",
        "volume-gcp-pd-ssd",
        "heavy-tail-20000",
        "heavy-tail-3000",
        "heavy-tail-100",
    ],
)
def test_random_requests_are_served_at_the_measured_rates(name: str) -> None:
    """Medians, and a cache of 64 MiB, made a device of 3,000 I/Os a second six times as fast."""
    profile = device(name)
    fitted_profile, patterns, apart = refit(profile)
    assert fitted_profile.kind == "ssd"
    for pattern in RANDOM if name == "heavy-tail-100" else [*RANDOM, *LARGE]:
        measured = statistics.median([repeat.rate_per_s for repeat in patterns[pattern]])
        modelled = simulate(fitted_profile, Job(preset=pattern, virtual_s=1)).iops
        assert modelled == pytest.approx(measured, rel=0.15), pattern
        assert not any(f" of {pattern}," in text for text in apart)
    for pattern in DEEP:
        rates = [simulate(each, Job(preset=pattern, virtual_s=1)).iops for each in (profile, fitted_profile)]
        assert rates[1] == pytest.approx(rates[0], rel=0.1), pattern
    if not name.startswith("heavy-tail"):  # 400 appends do not tell its mean
        assert append_us(fitted_profile) == pytest.approx(append_us(profile), rel=0.15)


def test_units_that_bound_large_reads_hide_the_link() -> None:
    """Their rate was taken for the link's: a transfer of 115 us left less of a latency than a unit takes."""
    profile = eight_units()
    fitted_profile, patterns, _ = refit(profile)
    true, found = (tomllib.loads(each.text) for each in (profile, fitted_profile))
    for name in ("channels", "stripe_kib"):
        assert found[name] == true[name]
    assert found["read_us"] == pytest.approx(true["read_us"], rel=0.05)
    assert found["link_mb_per_s"] <= true["link_mb_per_s"]
    for pattern in [*RANDOM, *LARGE]:
        measured = statistics.median([repeat.rate_per_s for repeat in patterns[pattern]])
        modelled = simulate(fitted_profile, Job(preset=pattern, virtual_s=1)).iops
        assert modelled == pytest.approx(measured, rel=0.15), pattern


@pytest.mark.parametrize("name", ["hdd-10k-18g-fc", "hdd-15k-sas", "hdd-7k2", "hdd-7k2-200g-ata"])
def test_a_disk_is_served_at_the_measured_rates(name: str) -> None:
    """A head switch as long as the skew lost a revolution at each track: half the rate in sequence.

    A disk without a queue did half as many reads at depth 32, and was fitted as flash.
    """
    fitted_profile, patterns, apart = refit(device(name))
    assert fitted_profile.kind == "hdd" and apart == []
    for pattern, repeats in patterns.items():
        if fitted_profile.write_cache and "write" in pattern:
            continue  # it takes in as many as it has room for
        measured = statistics.median([repeat.rate_per_s for repeat in repeats])
        modelled = simulate(fitted_profile, Job(preset=pattern, virtual_s=5)).iops
        assert modelled == pytest.approx(measured, rel=0.1 if pattern.startswith("seq") else 0.25), pattern


def test_a_warning_names_what_no_pattern_of_crystaldiskmark_shows() -> None:
    """A log on these disks does 1.5 times what the profile says: its writes need no seek."""
    profile = device("array-raid0-12x-hdd-10k-fc")
    fitted_profile, _, apart = refit(profile)
    assert append_us(fitted_profile) > 1.25 * append_us(profile)
    assert any(" of log-append-8k, " in text for text in apart)


def test_a_pattern_that_was_asked_for_is_compared() -> None:
    measured = {"mixed70-4k-qd64": [PatternResult(requests=10, bytes=40960, elapsed_s=1.0)]}
    (text,) = contradictions(profiles.load("ssd-nvme-dc").text, measured)
    assert " of mixed70-4k-qd64, and 10 were measured" in text


def test_a_drive_as_fast_as_memory_keeps_its_files() -> None:
    """A profile of memory never held what must last: no advice put a log on such a drive."""
    fast = refit(device("ssd-optane"))[0]
    assert fast.kind == "ram"
    assert not is_memory(fast) and not is_ephemeral(fast)
    assert is_memory(refit(device("ram"), memory=True)[0])


def test_memory_that_is_fitted_as_flash_holds_nothing_that_must_last() -> None:
    """On a busy host, a file system in memory does no more at depth than flash: a log was advised there."""
    busy = refit(device("ssd-nvme-dc"), memory=True)[0]
    assert busy.kind == "ssd" and is_ephemeral(busy)


def test_memory_is_told_from_what_answers_as_fast_but_has_a_limit() -> None:
    assert refit(device("ram"))[0].kind == "ram"
    text = re.sub(r"p50_us = \d+", "p50_us = 4", HEAVY_TAIL.format(iops=50_000))
    text = re.sub(r"p99_us = \d+", "p99_us = 8", text).replace("most = 500\n", "most = 5000\n")
    fast = profiles.parse(text, Path("loop.toml"))
    fitted_profile, patterns, _ = refit(fast)
    assert fitted_profile.kind == "ssd"
    for pattern in RANDOM:
        measured = statistics.median([repeat.rate_per_s for repeat in patterns[pattern]])
        modelled = simulate(fitted_profile, Job(preset=pattern, virtual_s=1)).iops
        assert modelled == pytest.approx(measured, rel=0.15), pattern


def test_units_beyond_the_measured_rate_are_left_in_a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One fewer at a time took eight minutes of a device of 256 units."""

    def times(mean: float) -> Interval:
        return Interval(mean, mean, mean, 3)

    tried: list[float] = []
    modelled_per_s = flash_fit.modelled_per_s

    def per_s(profile: str, pattern: str, measured_per_s: float) -> float:
        tried.append(modelled_per_s(profile, pattern, measured_per_s))
        return tried[-1]

    monkeypatch.setattr(flash_fit, "modelled_per_s", per_s)
    fit = flash_fit.FlashFit(
        read_latency_us=times(80.0),
        write_latency_us=times(20.0),
        read_cpu_us=2.0,
        write_cpu_us=2.0,
        unit_read_us=70.0,
        unit_seen=True,
        units=256,
        program_us=5120.0,
        read_iops=times(60_000.0),
        half_deep_read_iops=times(60_000.0),
        write_iops=times(50_000.0),
        written_bytes=1 << 28,
        read_mb_per_s=times(2_000.0),
        write_mb_per_s=times(1_500.0),
        alone_mb_per_s=times(1_000.0),
        flush_us=20.0,
        flush_after_write_us=30.0,
        span_bytes=1 << 30,
    )
    origin = Origin("2026-11-29", "host", "kernel", "/mnt", "disk", 3, 1 << 30)
    met = flash_fit.meeting_rates(fit, lambda fit: flash_text(fit, origin, protected=True, write_back=True))
    assert met.units == 4
    assert len(tried) < 50
