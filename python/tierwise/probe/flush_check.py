"""Flush honesty: whether a completed flush can have reached the medium, by the class of the device.

Bounds. A disk cannot write the same sector twice in less than one revolution; no disk ever turned faster
than 15,000 times a minute (4 ms). Programming a page of NAND flash takes some 200 µs with one bit per cell
and 400 to 900 µs with three (vendors' data sheets, quoted from memory; not checked against the
documents); the bound is half of the fastest. Faster persistent media exist (3D XPoint,
battery-backed memory), so a device below the bound that reports no volatile cache may be right.

Sources of measurement error: caches between the probe and the medium.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tierwise.host.page_cache import resident_bytes
from tierwise.probe.probe_target import ProbeTarget
from tierwise.results.measurements import FlushCheck, FlushTimes, FlushVerdict

SLOWEST_FLASH_READ_US = 1500.0
"""A random read that takes longer waits for a disk's rotation."""
SLOWEST_MEMORY_READ_US = 15.0
FASTEST_REVOLUTION_US = 60e6 / 15_000
FASTEST_PROGRAM_US = 100.0
_TOLERANCE = 0.9

Class = Literal["disk", "flash", "memory"]


def device_class(random_read_us: float) -> Class:
    """Class of a device by the time of a random read of 4 KiB; the kernel's flag may be wrong."""
    if random_read_us > SLOWEST_FLASH_READ_US:
        return "disk"
    return "memory" if random_read_us < SLOWEST_MEMORY_READ_US else "flash"


def check_flush(times: FlushTimes, place: ProbeTarget) -> FlushCheck:
    """The verdict on one device, from medians."""
    kind = device_class(times.random_read_us)
    verdict, reasons = _judge(kind, times, place)
    return FlushCheck(
        verdict=verdict,
        reasons=[*_flag_reasons(kind, times, place), *reasons, _kernel_reason(place)],
        times=times,
        device_class=kind,
        write_cache=place.write_cache,
        fua=place.fua,
    )


def _judge(kind: Class, times: FlushTimes, place: ProbeTarget) -> tuple[FlushVerdict, list[str]]:
    if place.memory:
        return "cannot have reached the medium", ["the data lives in memory alone and ends with the power"]
    if kind == "disk":
        return _judge_disk(times)
    return _judge_flash(times, place)


def _judge_flash(times: FlushTimes, place: ProbeTarget) -> tuple[FlushVerdict, list[str]]:
    took = f"an append of 4 KiB with its flush takes {times.write_flush_4k_us:,.0f} µs"
    if times.write_flush_4k_us >= FASTEST_PROGRAM_US:
        if place.virtual:
            return "cannot tell", [f"{took}, long enough for flash, but a hypervisor answers, not the drive"]
        return "honest", [f"{took}: long enough to program flash ({FASTEST_PROGRAM_US:.0f} µs at least)"]
    fast = f"{took}; flash is not programmed in less than {FASTEST_PROGRAM_US:.0f} µs"
    if place.virtual:
        return "cannot tell", [f"{fast}, but a hypervisor answers: it may keep a protected cache, or none"]
    if place.write_cache == "write back":
        return "cannot have reached the medium", [
            f"{fast}, and the drive says its cache is volatile; only if that cache is protected after all, "
            "or the medium is not flash, is the data safe"
        ]
    return "cannot tell", [
        f"{fast}; the drive claims to have no volatile cache: see its data sheet for power-loss protection"
    ]


def _judge_disk(times: FlushTimes) -> tuple[FlushVerdict, list[str]]:
    took = f"writing the same 4 KiB again with a flush takes {times.rewrite_us / 1e3:.2f} ms"
    if times.rewrite_us < _TOLERANCE * FASTEST_REVOLUTION_US:
        return "cannot have reached the medium", [
            f"{took}; a disk needs a revolution for it, {FASTEST_REVOLUTION_US / 1e3:.0f} ms at 15,000 rpm, "
            "the fastest ever made; only a controller's cache with a battery would make that safe"
        ]
    rpm = 60e6 / times.rewrite_us
    return "honest", [f"{took}: a revolution at {rpm:,.0f} rpm, or several of a faster disk"]


def _flag_reasons(kind: Class, times: FlushTimes, place: ProbeTarget) -> list[str]:
    """Contradictions between the kernel's flag and the measured times."""
    read = f"a random read takes {times.random_read_us:,.0f} µs"
    if place.rotational and kind != "disk":
        return [f"the kernel's flag says that the device rotates, but {read}: judged as {kind}"]
    if place.rotational is False and kind == "disk":
        return [f"the kernel's flag says that the device does not rotate, but {read}: judged as a disk"]
    return []


def _kernel_reason(place: ProbeTarget) -> str:
    match place.write_cache:
        case "write back":
            return "the kernel reports a volatile write cache and sends every flush to the device"
        case "write through":
            return "the kernel reports no volatile write cache, so it sends the device no flush at all"
        case _:
            return "the kernel reports nothing on a write cache: no block device is visible here"


_CACHED_SHARE = 0.05


def cache_warnings(place: ProbeTarget, file: Path | None, size_bytes: int, flush: FlushCheck) -> list[str]:
    """One line for each cache that was, or may have been, measured instead of the medium."""
    texts = []
    if file is not None and (resident_bytes(file) or 0) > _CACHED_SHARE * size_bytes:
        texts.append("the page cache holds the file though it was opened past it: reads are not the device's")
    if place.memory:
        texts.append(f"{place.file_system or place.block} is memory: no storage was measured")
    if place.disks > 1:
        texts.append(
            f"{place.disks} physical devices lie under {place.path}: they were measured as one device"
        )
    if place.virtual:
        texts.append("the device is virtual: its host may cache reads and writes, and limit their rate")
    if flush.write_cache == "write back" and flush.times.write_4k_us < flush.times.write_flush_4k_us / 2:
        texts.append("a volatile write cache takes writes in: without a flush their figures are the cache's")
    if place.rotational and flush.device_class != "disk":
        texts.append("flagged as a disk but far too fast for one: a cache before it answers")
    return texts
