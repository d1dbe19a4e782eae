"""Formats a measured profile with the source of each number: a hard disk, a solid-state disk, memory."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from tierwise.device_models.profiles import DOUBT
from tierwise.model.statistics import Interval
from tierwise.model.units import SECTOR_BYTES
from tierwise.probe.disk_fit import ZONES, DiskFit
from tierwise.probe.flash_fit import FlashFit

_SURFACES = 4


def disk_profile_text(fit: DiskFit, origin: MeasurementOrigin, queue_depth: int) -> str:
    """Profile of a hard disk of the file system's or device's size, extrapolated from the probed span."""
    return profile_text(
        "hdd",
        f"measured by tierwise device probe at {origin.device}: {fit.rpm.estimate:,.0f} rpm",
        {},
        flags={"write_cache": fit.write_cache},
        zones=_zones(fit, origin.capacity_bytes),
        tables=_tables(fit, origin.capacity_bytes / fit.span_bytes, queue_depth),
        sources=_sources(fit, origin),
    )


def _zones(fit: DiskFit, capacity_bytes: int) -> list[Table]:
    """Equal parts of the disk, each with a track length from the rate of its part of the probed span."""
    revolution_us = 60e6 / fit.rpm.estimate
    zones: list[Table] = []
    first = 0
    for rate in fit.media_mb_per_s:
        sectors = max(round(rate.estimate * revolution_us / SECTOR_BYTES), 8)
        cylinders = max(round(capacity_bytes / ZONES / (sectors * SECTOR_BYTES * _SURFACES)), 1)
        skew, cylinder_skew = _skews(fit, sectors)
        zones.append(
            {
                "first_cylinder": first,
                "cylinders": cylinders,
                "sectors_per_track": sectors,
                "track_skew_sectors": skew,
                "cylinder_skew_sectors": cylinder_skew,
            }
        )
        first += cylinders
    return zones


def _skews(fit: DiskFit, sectors: int) -> tuple[int, int]:
    """Skew of a track and of a cylinder.

    Rounded up: a head that comes late waits a revolution. The least seek fits into that of a cylinder.
    """
    step_share = (fit.single_us + _settle_us(fit)) * fit.rpm.estimate / 60e6
    shares = fit.skew_share, max(fit.skew_share, step_share)
    track, cylinder = (min(math.ceil(share * sectors) + 1, sectors - 1) for share in shares)
    return track, cylinder


def _settle_us(fit: DiskFit) -> float:
    """Of a write; a disk's skew leaves time for it."""
    return min(fit.write_settle_us, fit.skew_share * 60e6 / fit.rpm.estimate)


def _tables(fit: DiskFit, strokes: float, queue_depth: int) -> dict[str, Table]:
    hit_us, write_hit_us = round_measurement(fit.overhead_us), round_measurement(fit.write_hit_us)
    befores = ("read", "write")
    overhead = {f"read_{kind}_after_{before}_us": hit_us for kind in ("hit", "miss") for before in befores}
    overhead |= {f"write_hit_after_{kind}_us": write_hit_us for kind in befores}
    overhead |= {f"write_miss_after_{kind}_us": hit_us for kind in befores}
    average_us, full_us = fit.seeks_us(strokes)
    return {
        "mechanics": {
            "rpm": round(fit.rpm.estimate, 1),
            "surfaces": _SURFACES,
            "head_switch_us": round_measurement(fit.skew_share * 60e6 / fit.rpm.estimate - _settle_us(fit)),
            "write_settle_us": round_measurement(_settle_us(fit)),
            "serpentine": False,
        },
        "seek": {
            "curve": "lee-katz",
            "single_us": round_measurement(fit.single_us),
            "average_us": round_measurement(average_us),
            "full_us": round_measurement(full_us),
        },
        "cache": {
            "segments": 16,
            "segment_sectors": 1024,
            "readahead_sectors": 512,
            "write_sectors": 16384,
            "write_segments": 128,
        },
        "bus": {"sector_us": 1.0},
        "queue": {"depth": queue_depth, "policy": "sptf", "age_limit_us": 500_000},
        "overhead": {
            **overhead,
            "read_completion_us": 0,
            "write_completion_us": 0,
            "flush_us": hit_us,
        },
    }


def _sources(fit: DiskFit, origin: MeasurementOrigin) -> dict[str, str]:
    rates = " and ".join(median_interval_text(fit.media_mb_per_s[end]) for end in (0, -1))
    rotation = (
        "time to write and flush the same block again"
        if fit.rewrites_seen
        else "spread of random reads, since a cache took the writes"
    )
    return {
        "mechanics.rpm": origin.source(f"{rotation} ({median_interval_text(fit.rpm)})"),
        "mechanics.surfaces": "estimated: not seen; seeks are fitted over the stroke, whatever the heads",
        "mechanics.head_switch_us": origin.source(
            "time lost at the end of a track in sequential reads, less write_settle_us"
        ),
        "mechanics.write_settle_us": origin.source(
            "median random write less median read; 0 with a write cache"
        ),
        "zones": origin.source(
            f"rate of sequential reads free of track switches, {ZONES} places; at the ends, MB/s ({rates}); "
            f"cylinders follow from the size of the file system or device, {_share(fit, origin)} of it probed"
        ),
        "seek": origin.source(
            f"least squares over {fit.seeks} random reads; the same curve beyond the probed span, which is "
            f"{_share(fit, origin)} of the size"
        ),
        "cache": "estimated: 8 MiB in 16 segments for reading, 8 MiB for writing; sizes are not seen",
        "bus": "estimated: 500 MB/s, since the medium is slower than any bus of today",
        "queue": "estimated: policy and age limit by choice",
        "queue.depth": origin.source("set so that random 4 KiB reads at depth 32 are met, at most 32"),
        "overhead": origin.source("median read of the block just read; flush alike, a command without data"),
    }


def _share(fit: DiskFit, origin: MeasurementOrigin) -> str:
    """Probed share of the size."""
    return f"{min(fit.span_bytes / origin.capacity_bytes, 1):.3g}"


_CACHE_KIB = 16, 32_768
_CACHE_SHARE = 0.05
_BLOCK_BYTES = 4096


def flash_profile_text(fit: FlashFit, origin: MeasurementOrigin, protected: bool, write_back: bool) -> str:
    """Profile of a solid-state disk.

    Args:
        fit: its figures.
        origin: where and when they were measured.
        protected: whether a flush need not empty its cache.
        write_back: whether the kernel reports a write-back cache, and so sends flushes.
    """
    read_us = fit.read_latency_us.estimate - fit.unit_read_us - fit.bus_us - _BLOCK_BYTES / fit.link_mb_per_s
    write_us = fit.write_latency_us.estimate - _BLOCK_BYTES / fit.link_write_mb_per_s
    cached = write_us < fit.busy_program_us
    write_us -= 0.0 if cached else fit.busy_program_us
    unit = (
        origin.source("eight readers of one block, time of each read; then set so that depth 64 is met")
        if fit.unit_seen
        else "estimated: four fifths of the measured latency, since a cache serves repeated reads; "
        "then set so that the measured rate at depth 64 is met"
    )
    numbers: dict[str, Number] = {
        "capacity_mb": origin.capacity(fit.span_bytes),
        "channels": (
            math.ceil(fit.units / max(fit.units_on_bus, 1)),
            origin.source(
                f"random 4 KiB reads a second at depth 64 ({median_interval_text(fit.read_iops, 0)}) "
                "times read_us, corrected for idle units"
            ),
        ),
        "stripe_kib": (
            fit.stripe_kib,
            "estimated: such that reads of 64 KiB, and of 1 MiB in sequence, are met at depth 1 and 8",
        ),
        "read_us": (round_measurement(fit.unit_read_us), unit),
        "program_us": (
            round_measurement(fit.program_us),
            origin.source(
                "set so that random 4 KiB writes at depth 64 are met "
                f"({median_interval_text(fit.write_iops, 0)}) on a file written whole; "
                "cleaning that begins later is not seen"
            ),
        ),
        "read_overhead_us": (
            round_measurement(max(read_us, 0.0)),
            origin.source(f"{_off_core('read', fit.read_latency_us)} less read_us, channel and link"),
        ),
        "write_overhead_us": (
            round_measurement(max(write_us, 0.0)),
            origin.source(
                f"{_off_core('write', fit.write_latency_us)} less link{'' if cached else ' and program_us'}"
            ),
        ),
        "flush_us": (
            round_measurement(fit.flush_us),
            origin.source("mean flush with nothing to write, off the core"),
        ),
        "link_mb_per_s": _link(fit.link_mb_per_s, "reads", origin),
        "link_write_mb_per_s": _link(fit.link_write_mb_per_s, "writes", origin),
        "write_cache_kib": (
            _cache_kib(fit.written_bytes) if cached else 0,
            "estimated: none, since a write takes as long as programming"
            if not cached
            else "estimated: at most a twentieth of what a repeat of random writes wrote, up to 32 MiB: a "
            "larger cache would take in as much at a rate that was not measured",
        ),
    }
    if fit.units_on_bus > 1:
        numbers["dies_per_channel"] = (fit.units_on_bus, "estimated: as stripe_kib")
    if fit.bus_us > 0:
        numbers["channel_mb_per_s"] = (
            round_measurement(_BLOCK_BYTES / fit.bus_us),
            origin.source("mean random reads of 16 KiB and of 4 KiB, less link"),
        )
    if protected or not cached:
        numbers["flush_us"] = (
            round_measurement(fit.flush_after_write_us),
            origin.source("mean append of 4 KiB with its flush less the mean write, off the core"),
        )
    else:
        longer_us = fit.flush_after_write_us - fit.flush_us - fit.busy_program_us
        appended = "append of 4 KiB with its flush less the mean write"
        if longer_us < 0:
            numbers["flush_us"] = (
                round_measurement(max(fit.flush_us + longer_us, 0.0)),
                origin.source(f"mean {appended} and program_us, off the core"),
            )
        numbers["journal_us"] = (
            round_measurement(max(longer_us, 0.0)),
            origin.source(f"mean {appended}, flush_us and program_us, off the core"),
        )
    summary = (
        f"measured by tierwise device probe at {origin.device}: {fit.read_latency_us.estimate:.0f} us read"
    )
    flags = {"power_loss_protection": protected and cached}
    if write_back:
        flags["reports_write_back"] = True
    if origin.memory:
        flags["ephemeral"] = True
    return profile_text("ssd", summary, numbers, flags=flags)


def _cache_kib(written_bytes: int) -> int:
    least, most = _CACHE_KIB
    return int(min(max(2 ** math.floor(math.log2(max(_CACHE_SHARE * written_bytes / 1024, 1))), least), most))


def _off_core(kind: str, latency_us: Interval) -> str:
    return f"mean random 4 KiB {kind} off the core in us ({median_interval_text(latency_us)})"


def _link(mb_per_s: float, kind: str, origin: MeasurementOrigin) -> Number:
    what = f"rate of {kind} of 1 MiB in sequence at depth 8, or of 4 KiB at depth 64 if higher"
    return round_measurement(mb_per_s), origin.source(f"{what}; the link may be faster")


def memory_profile_text(fit: FlashFit, origin: MeasurementOrigin, *, lasting: bool) -> str:
    """Profile of memory behind a link; or, if what it holds is lasting, of a drive that answers as fast."""
    link_mb_per_s = max(fit.link_mb_per_s, fit.link_write_mb_per_s)
    transfer_us = _BLOCK_BYTES / link_mb_per_s
    numbers: dict[str, Number] = {
        "capacity_mb": origin.capacity(fit.span_bytes),
        "read_latency_us": (
            round_measurement(max(fit.read_latency_us.estimate - transfer_us, 0.0)),
            origin.source(f"{_off_core('read', fit.read_latency_us)} less link"),
        ),
        "write_latency_us": (
            round_measurement(max(fit.write_latency_us.estimate - transfer_us, 0.0)),
            origin.source(f"{_off_core('write', fit.write_latency_us)} less link"),
        ),
        "flush_latency_us": (
            round_measurement(fit.flush_after_write_us),
            origin.source("mean append of 4 KiB with its flush less the mean write, off the core"),
        ),
        "link_mb_per_s": _link(link_mb_per_s, "reads or writes", origin),
    }
    flags = {"ephemeral": False} if lasting else {}
    return profile_text("ram", f"measured by tierwise device probe at {origin.device}", numbers, flags=flags)


MB = 1_000_000

Scalar = float | int | bool | str
Table = Mapping[str, Scalar]
Number = tuple[Scalar, str]
"""A value and its source."""


@dataclass(frozen=True)
class MeasurementOrigin:
    """Place and method of the measurement; every source begins with them."""

    date: str
    host: str
    kernel: str
    path: str
    device: str
    """The path and the layers below it."""
    repeats: int
    capacity_bytes: int
    """Size of the file system or device; the probed span may be smaller."""
    memory: bool = False
    """Whether it is memory, however it was fitted: what it holds ends with the power."""

    def source(self, what: str) -> str:
        """The source of one number."""
        return (
            f"measured: tierwise device probe of {self.path} on {self.date}, host {self.host}, "
            f"Linux {self.kernel}, {self.repeats} repeats: {what}"
        )

    def capacity(self, span_bytes: int) -> Number:
        """The capacity of the file system or device, with ``span_bytes`` probed."""
        return self.capacity_bytes // MB, self.source(f"its size; {span_bytes // MB:,} MB of it were probed")


def profile_with_doubts(profile: str, doubts: list[str]) -> tuple[str, list[str]]:
    """A profile that names its doubts in one line, which every prediction with it repeats; and the doubts."""
    line = "; ".join(doubt.partition(": ")[0] for doubt in doubts)
    return (f"{DOUBT}{line}\n{profile}" if doubts else profile), doubts


def median_interval_text(interval: Interval, digits: int = 1) -> str:
    """A median with its interval."""
    median = f"median {interval.estimate:.{digits}f}"
    if interval.low is None or interval.high is None:
        return median
    return f"{median}, 95 % interval {interval.low:.{digits}f} to {interval.high:.{digits}f}"


def round_measurement(number: float) -> float:
    """Round to four significant digits: no measurement here is more precise."""
    return float(f"{number:.4g}")


def profile_text(
    kind: str,
    summary: str,
    numbers: Mapping[str, Number],
    *,
    flags: Table | None = None,
    zones: list[Table] | None = None,
    tables: Mapping[str, Table] | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """TOML of a profile."""
    top: dict[str, Scalar] = {"kind": kind, "summary": summary}
    top |= {key: value for key, (value, _) in numbers.items()} | dict(flags or {})
    lines = ["# Written by tierwise device probe.", *_assignments(top)]
    if zones:
        lines += ["zones = [", *(f"  {{ {', '.join(_assignments(zone))} }}," for zone in zones), "]"]
    for name, table in (tables or {}).items():
        lines += ["", f"[{name}]", *_assignments(table)]
    texts = {key: source for key, (_, source) in numbers.items()} | dict(sources or {})
    quoted = {json.dumps(key) if "." in key else key: text for key, text in texts.items()}
    return "\n".join([*lines, "", "[source]", *_assignments(quoted), ""])


def _assignments(table: Table) -> list[str]:
    """``json`` writes strings, numbers and booleans as TOML does."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
