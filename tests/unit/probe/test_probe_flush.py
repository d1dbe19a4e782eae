"""Flush honesty: the verdict that follows from times, class of device and what the kernel reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.probe.flush import check_flush, device_class
from tierwise.probe.place import Place
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
) -> Place:
    return Place(Path("/mnt"), "sda", "ext4", memory, virtual, rotational, write_cache, False, 1, "")


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
def test_verdict(measured: FlushTimes, where: Place, verdict: str) -> None:
    assert check_flush(measured, where).verdict == verdict


def test_a_disk_is_honest_from_the_fastest_revolution_on() -> None:
    """4 ms at 15,000 rpm, less a tenth for the clock and the host."""
    assert check_flush(times(6_000, 90, 3_700, 3_700), place()).verdict == "honest"
    assert check_flush(times(6_000, 90, 3_500, 3_500), place()).verdict == "cannot have reached the medium"


def test_reasons_name_times_and_the_kernels_report() -> None:
    check = check_flush(LYING_DISK, place("write through", rotational=False))
    text = " ".join(check.reasons)
    assert "0.11 ms" in text and "no flush at all" in text and "does not rotate" in text
