"""A profile that is fitted to a modelled device serves what was measured of that device at the same rates."""

from __future__ import annotations

import itertools
import re
import statistics
import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from support.eight_units import eight_units
from support.virtual_target import VirtualTarget
from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile
from tierwise.model.statistics import Interval
from tierwise.predict.named_devices import is_instance_store, is_volatile_memory
from tierwise.probe import ProbeOptions, flash_fit, probe_samples
from tierwise.probe.device_probe import fit_profile, median_flush_times, profile_contradictions
from tierwise.probe.flush_check import check_flush
from tierwise.probe.probe_samples import CRYSTALDISKMARK, flush_ends_us, flushed_appends, sample_patterns
from tierwise.probe.probe_target import ProbeTarget
from tierwise.probe.profile_text import MeasurementOrigin, flash_profile_text
from tierwise.results.measurements import PatternResult

OPTIONS = ProbeOptions(seconds=12, repeats=1, destroy=True, fill=False)
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


def device(name: str) -> DeviceProfile:
    if name.startswith("heavy-tail-"):
        text = HEAVY_TAIL.format(iops=name.removeprefix("heavy-tail-"))
        return profiles.parse_profile(text, Path(f"{name}.toml"))
    return profiles.load_profile(name)


def refit(
    profile: DeviceProfile, *, memory: bool = False
) -> tuple[DeviceProfile, dict[str, list[PatternResult]], list[str]]:
    """The profile that a probe of the device writes, what it measured, and where the two differ."""
    # The target has a probe's methods, not its type.
    target: _core.ProbeTarget = VirtualTarget(profile)  # type: ignore[assignment]
    random = Random(1)
    write_cache = "write back" if profile.write_cache else "write through"
    place = ProbeTarget(Path("/mnt"), "sda", "ext4", memory, False, False, write_cache, False, 1, "")
    patterns = sample_patterns(
        target, list(CRYSTALDISKMARK.values()), OPTIONS.repeats, 6, random, lambda _: None
    )
    flush = check_flush(median_flush_times(target, OPTIONS, random), place)
    origin = MeasurementOrigin(
        "2026-11-29", "db1", "6.1", "/data", "/data", OPTIONS.repeats, profile.capacity_bytes, memory
    )
    text, apart = fit_profile(target, patterns, flush, origin, OPTIONS, random)
    return profiles.parse_profile(text, Path("fitted.toml")), patterns, apart


def append_us(profile: DeviceProfile, size_bytes: int = 8192) -> float:
    """Mean time of an append with its flush."""
    target: _core.ProbeTarget = VirtualTarget(profile)  # type: ignore[assignment]
    ends_us = flush_ends_us(target, flushed_appends(target, size_bytes, Random(3)), 10)
    return float(ends_us[-1] - ends_us[0]) / (len(ends_us) - 1)


@pytest.fixture(autouse=True)
def _no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time has no processor time of a host, and no rest."""
    monkeypatch.setattr(probe_samples.time, "process_time", lambda: 0.0)
    monkeypatch.setattr(probe_samples.time, "sleep", lambda _: None)


def test_processor_time_that_passes_while_the_device_works_is_the_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest that hands a request to its hypervisor is charged for that: 40 us of reads of 41 us."""
    monkeypatch.setattr(probe_samples.time, "process_time", itertools.count(0, 1000).__next__)
    fitted_profile, patterns, apart = refit(device("ssd-nvme-dc"))
    (measured,) = patterns["rnd4k-q1t1-read"]
    modelled = simulate_job(fitted_profile, SimulationJob(preset="rnd4k-q1t1-read", count=1000)).iops
    assert measured.rate_per_s < modelled < 1.05 * measured.rate_per_s
    assert all(" of log-append-64k, " in text for text in apart)  # a link is bound by its large writes


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
        modelled = simulate_job(fitted_profile, SimulationJob(preset=pattern, virtual_s=1)).iops
        assert modelled == pytest.approx(measured, rel=0.15), pattern
        assert not any(f" of {pattern}," in text for text in apart)
    for pattern in DEEP:
        rates = [
            simulate_job(each, SimulationJob(preset=pattern, virtual_s=1)).iops
            for each in (profile, fitted_profile)
        ]
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
        modelled = simulate_job(fitted_profile, SimulationJob(preset=pattern, virtual_s=1)).iops
        assert modelled == pytest.approx(measured, rel=0.15), pattern


class StallingTarget(VirtualTarget):
    """Its machine stands still for 70 ms in the first trace of reads, of flushes and of appends."""

    def __init__(self, profile: DeviceProfile) -> None:
        super().__init__(profile)
        self.seen: set[tuple[str, str]] = set()

    def trace(
        self, requests: Sequence[tuple[str, int, int]], depth: int, seconds: float
    ) -> list[tuple[int, int, int]]:
        done = super().trace(requests, depth, seconds)
        kind = (requests[0][0], requests[1][0]) if len(requests) > 1 else ("", "")
        if kind in self.seen or len(done) < 4:
            return done
        self.seen.add(kind)
        return [
            (number, start, end + (70_000_000 if number >= 2 else 0)) for number, start, end in done[:3]
        ] + [(number, start + 70_000_000, end + 70_000_000) for number, start, end in done[3:]]


def test_a_stall_of_the_machine_is_in_no_time() -> None:
    """A mean over one sample made a flush of 2 ms one of 2.8 ms."""
    profile = eight_units()
    target: _core.ProbeTarget = StallingTarget(profile)  # type: ignore[assignment]
    patterns = sample_patterns(target, list(CRYSTALDISKMARK.values()), 3, 6, Random(1), lambda _: None)
    fit = flash_fit.fit_flash(target, patterns, 2.5, 3, Random(1))
    true = tomllib.loads(profile.text)
    assert fit.flush_us == pytest.approx(true["flush_us"], rel=0.01)
    assert fit.unit_read_us == pytest.approx(true["read_us"], rel=0.05)
    assert fit.flush_after_write_us < 2 * true["flush_us"]


@pytest.mark.parametrize("noise", [-0.04, -0.02, 0.02, 0.04])
def test_noise_protects_no_cache(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal times were compared: every other probe of a volatile cache called it protected."""
    took_us = flash_fit._append_us
    monkeypatch.setattr(flash_fit, "_append_us", lambda *of: took_us(*of) * (1 + noise))
    profile, _, _ = refit(eight_units())
    fitted_profile, true = tomllib.loads(profile.text), tomllib.loads(eight_units().text)
    assert not fitted_profile["power_loss_protection"]
    assert fitted_profile["flush_us"] == pytest.approx(true["flush_us"], rel=0.1)
    assert append_us(profile, 4096) == pytest.approx(append_us(eight_units(), 4096) * (1 + noise), rel=0.03)


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
        modelled = simulate_job(fitted_profile, SimulationJob(preset=pattern, virtual_s=5)).iops
        assert modelled == pytest.approx(measured, rel=0.1 if pattern.startswith("seq") else 0.25), pattern


def test_a_warning_names_what_no_pattern_of_crystaldiskmark_shows() -> None:
    """A log on these disks does 1.5 times what the profile says: its writes need no seek."""
    profile = device("array-raid0-12x-hdd-10k-fc")
    fitted_profile, _, apart = refit(profile)
    assert append_us(fitted_profile) > 1.25 * append_us(profile)
    assert any(" of log-append-8k, " in text for text in apart)


MIRROR = """
kind = "array"
summary = "two disks behind a controller with a protected cache"
member = "hdd-7k2"
member_write_cache = false
members = 2
level = "raid1"
coupled = false

[controller]
overhead_us = 15
bus_mb_per_s = 3000
cache_mib = 512
write_share = 0.5
protected = true

[source]
members = "by choice, for this test"
controller = "by choice, for this test"
"""


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("ssd-nvme-dc", "mixed70-4k-qd64"),
        ("volume-aws-gp3", "log-append-64k"),
        ("mirror", "no disk does the measured rates"),
    ],
)
def test_a_profile_names_what_it_gets_wrong(name: str, doubt: str) -> None:
    """0.7 or 1.3 times the rate, and 6 times that of writes that outlast a cache, had no warning."""
    profile = profiles.parse_profile(MIRROR, Path("mirror.toml")) if name == "mirror" else device(name)
    fitted_profile, _, apart = refit(profile)
    assert fitted_profile.kind == "ssd" and any(doubt in text for text in apart)
    (carried,) = fitted_profile.doubts
    assert doubt in carried


def test_a_pattern_that_was_asked_for_is_compared() -> None:
    measured = {"mixed70-4k-qd64": [PatternResult(requests=10, bytes=40960, elapsed_s=1.0)]}
    (text,) = profile_contradictions(profiles.load_profile("ssd-nvme-dc").text, measured)
    assert " of mixed70-4k-qd64, and 10 were measured" in text


def test_a_drive_as_fast_as_memory_keeps_its_files() -> None:
    """A profile of memory never held what must last: no advice put a log on such a drive."""
    fast = refit(device("ssd-optane"))[0]
    assert fast.kind == "ram"
    assert not is_volatile_memory(fast) and not is_instance_store(fast)
    assert is_volatile_memory(refit(device("ram"), memory=True)[0])


def test_memory_that_is_fitted_as_flash_holds_nothing_that_must_last() -> None:
    """On a busy host, a file system in memory does no more at depth than flash: a log was advised there."""
    busy = refit(device("ssd-nvme-dc"), memory=True)[0]
    assert busy.kind == "ssd" and is_instance_store(busy)


def test_memory_is_told_from_what_answers_as_fast_but_has_a_limit() -> None:
    assert refit(device("ram"))[0].kind == "ram"
    text = re.sub(r"p50_us = \d+", "p50_us = 4", HEAVY_TAIL.format(iops=50_000))
    text = re.sub(r"p99_us = \d+", "p99_us = 8", text).replace("most = 500\n", "most = 5000\n")
    fast = profiles.parse_profile(text, Path("loop.toml"))
    fitted_profile, patterns, _ = refit(fast)
    assert fitted_profile.kind == "ssd"
    for pattern in RANDOM:
        measured = statistics.median([repeat.rate_per_s for repeat in patterns[pattern]])
        modelled = simulate_job(fitted_profile, SimulationJob(preset=pattern, virtual_s=1)).iops
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
        medium_latency_us=times(80.0),
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
        striped_reads={"randread-64k": 9_000.0, "seq1m-q1t1-read": 950.0, "seq1m-q8t1-read": 1_900.0},
        flush_us=20.0,
        flush_after_write_us=30.0,
        span_bytes=1 << 30,
    )
    origin = MeasurementOrigin("2026-11-29", "host", "kernel", "/mnt", "disk", 3, 1 << 30)
    met = flash_fit.fit_to_measured_rates(
        fit, lambda fit: flash_profile_text(fit, origin, protected=True, write_back=True)
    )
    assert met.units == 4
    assert len(tried) < 50


@pytest.mark.parametrize(("name", "channel_mb_per_s"), [("ssd-nvme-dc", 530), ("ssd-nvme-consumer", 800)])
def test_a_bus_of_units_and_their_stripe_are_found(name: str, channel_mb_per_s: float) -> None:
    """Reads of 64 KiB were 1.5 times too fast, and small ones in sequence twice: units had no bus."""
    profile = device(name)
    fitted_profile, _, _ = refit(profile)
    true, fitted = (tomllib.loads(each.text) for each in (profile, fitted_profile))
    assert fitted["channel_mb_per_s"] == pytest.approx(channel_mb_per_s, rel=0.05)
    assert fitted["stripe_kib"] == true["stripe_kib"] * true["planes"]
    for pattern in ("randread-16k", "randread-64k", "seqread-64k", "seqread-4k-qd8"):
        measured, modelled = (
            simulate_job(each, SimulationJob(preset=pattern, virtual_s=1)).iops
            for each in (profile, fitted_profile)
        )
        assert modelled == pytest.approx(measured, rel=0.15), pattern
