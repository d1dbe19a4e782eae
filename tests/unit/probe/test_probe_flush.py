"""Flush honesty: the verdict that follows from times, class of device and what the kernel reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.device_models import profiles
from tierwise.model.statistics import Interval
from tierwise.probe.flash_fit import FlashFit
from tierwise.probe.flush_check import check_flush, device_class
from tierwise.probe.probe_target import ProbeTarget
from tierwise.probe.profile_text import MeasurementOrigin, flash_profile_text
from tierwise.results.measurements import FlushTimes


def times(read_us: float, write_us: float, flushed_us: float, rewrite_us: float) -> FlushTimes:
    return FlushTimes(
        random_read_us=read_us,
        write_4k_us=write_us,
        write_flush_4k_us=flushed_us,
        write_8k_us=write_us,
        write_flush_8k_us=flushed_us,
        flush_us=10,
        rewrite_us=rewrite_us,
    )


def place(
    write_cache: str | None = "write back",
    virtual: bool = False,
    memory: bool = False,
    rotational: bool = False,
) -> ProbeTarget:
    return ProbeTarget(Path("/mnt"), "sda", "ext4", memory, virtual, rotational, write_cache, False, 1, "")


@pytest.mark.parametrize(
    ("read_us", "expected"), [(12_000, "disk"), (2_000, "disk"), (90, "flash"), (20, "flash"), (4, "memory")]
)
def test_class_follows_the_random_read(read_us: float, expected: str) -> None:
    assert device_class(read_us) == expected


DISK = times(12_000, 90, 8_400, 8_333)
LYING_DISK = times(12_000, 90, 120, 110)
FLASH = times(90, 30, 900, 900)
FAST_FLASH = times(90, 20, 28, 28)


@pytest.mark.parametrize(
    ("measured", "where", "verdict"),
    [
        (DISK, place(rotational=True), "honest"),
        (DISK, place("write through", rotational=True), "honest"),
        (LYING_DISK, place(rotational=True), "cannot have reached the medium"),
        (LYING_DISK, place("write through", rotational=True), "cannot have reached the medium"),
        (FLASH, place(), "honest"),
        (FLASH, place(virtual=True), "cannot tell"),
        (FAST_FLASH, place(), "cannot have reached the medium"),
        (FAST_FLASH, place("write through"), "cannot tell"),
        (FAST_FLASH, place(virtual=True), "cannot tell"),
        (FAST_FLASH, place(None, memory=True), "cannot have reached the medium"),
    ],
)
def test_verdict(measured: FlushTimes, where: ProbeTarget, verdict: str) -> None:
    assert check_flush(measured, where).verdict == verdict


def test_a_disk_is_honest_from_the_fastest_revolution_on() -> None:
    """4 ms at 15,000 rpm, less a tenth for the clock and the host."""
    assert check_flush(times(6_000, 90, 3_700, 3_700), place()).verdict == "honest"
    assert check_flush(times(6_000, 90, 3_500, 3_500), place()).verdict == "cannot have reached the medium"


def test_reasons_name_times_and_the_kernels_report() -> None:
    check = check_flush(LYING_DISK, place("write through", rotational=False))
    text = " ".join(check.reasons)
    assert "0.11 ms" in text and "no flush at all" in text and "does not rotate" in text


@pytest.mark.parametrize("write_back", [True, False])
def test_a_profile_is_sent_flushes_where_the_kernel_sends_them(write_back: bool, tmp_path: Path) -> None:
    spread = Interval(100.0, 90.0, 110.0, 5)
    fit = FlashFit(
        read_latency_us=spread,
        medium_latency_us=spread,
        write_latency_us=Interval(40.0, 38.0, 42.0, 5),
        read_cpu_us=2.0,
        write_cpu_us=2.0,
        unit_read_us=80.0,
        unit_seen=True,
        units=4,
        program_us=100.0,
        read_iops=spread,
        half_deep_read_iops=spread,
        write_iops=Interval(40_000.0, 39_000.0, 41_000.0, 5),
        written_bytes=1 << 28,
        read_mb_per_s=spread,
        write_mb_per_s=spread,
        striped_reads={"seq1m-q1t1-read": 95.0},
        flush_us=64.0,
        flush_after_write_us=64.0,
        span_bytes=1 << 30,
    )
    origin = MeasurementOrigin(
        date="2026-11-28",
        host="db1",
        kernel="6.1",
        path="/data",
        device="/data",
        repeats=5,
        capacity_bytes=1 << 33,
    )
    profile = profiles.parse_profile(flash_profile_text(fit, origin, True, write_back), tmp_path / "own.toml")
    assert profile.write_cache == write_back
