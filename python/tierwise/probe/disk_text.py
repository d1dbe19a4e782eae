"""Formats the fit of a hard disk as a profile."""

from __future__ import annotations

from tierwise.model.units import SECTOR_BYTES
from tierwise.probe.disk_fit import ZONES, DiskFit
from tierwise.probe.profile_text import Origin, Table, interval_text, profile_text, rounded

_SURFACES = 4


def disk_text(fit: DiskFit, origin: Origin) -> str:
    """Profile of a hard disk of the file system's or device's size, extrapolated from the probed span."""
    return profile_text(
        "hdd",
        f"measured by tierwise probe at {origin.device}: {fit.rpm.estimate:,.0f} rpm",
        {},
        flags={"write_cache": fit.write_cache},
        zones=_zones(fit, origin.capacity_bytes),
        tables=_tables(fit, origin.capacity_bytes / fit.span_bytes),
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
        skew = round(fit.skew_share * sectors)
        zones.append(
            {
                "first_cylinder": first,
                "cylinders": cylinders,
                "sectors_per_track": sectors,
                "track_skew_sectors": skew,
                "cylinder_skew_sectors": skew,
            }
        )
        first += cylinders
    return zones


def _tables(fit: DiskFit, strokes: float) -> dict[str, Table]:
    hit_us, write_hit_us = rounded(fit.overhead_us), rounded(fit.write_hit_us)
    befores = ("read", "write")
    overhead = {f"read_{kind}_after_{one}_us": hit_us for kind in ("hit", "miss") for one in befores}
    overhead |= {f"write_hit_after_{one}_us": write_hit_us for one in befores}
    overhead |= {f"write_miss_after_{one}_us": hit_us for one in befores}
    average_us, full_us = fit.seeks_us(strokes)
    return {
        "mechanics": {
            "rpm": round(fit.rpm.estimate, 1),
            "surfaces": _SURFACES,
            "head_switch_us": rounded(fit.skew_share * 60e6 / fit.rpm.estimate),
            "write_settle_us": rounded(fit.write_settle_us),
            "serpentine": False,
        },
        "seek": {
            "curve": "lee-katz",
            "single_us": rounded(fit.single_us),
            "average_us": rounded(average_us),
            "full_us": rounded(full_us),
        },
        "cache": {
            "segments": 16,
            "segment_sectors": 1024,
            "readahead_sectors": 512,
            "write_sectors": 16384,
            "write_segments": 128,
        },
        "bus": {"sector_us": 1.0},
        "queue": {"depth": 32, "policy": "sptf", "age_limit_us": 500_000},
        "overhead": {
            **overhead,
            "read_completion_us": 0,
            "write_completion_us": 0,
            "flush_us": hit_us,
        },
    }


def _sources(fit: DiskFit, origin: Origin) -> dict[str, str]:
    rates = " and ".join(interval_text(fit.media_mb_per_s[end]) for end in (0, -1))
    rotation = (
        "time to write and flush the same block again"
        if fit.rewrites_seen
        else "spread of random reads, since a cache took the writes"
    )
    return {
        "mechanics.rpm": origin.source(f"{rotation} ({interval_text(fit.rpm)})"),
        "mechanics.surfaces": "estimated: not seen; seeks are fitted over the stroke, whatever the heads",
        "mechanics.head_switch_us": origin.source("time lost at the end of a track in sequential reads"),
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
        "queue": "estimated: native command queue of 32 of Serial ATA 2.6; policy and age limit by choice",
        "overhead": origin.source("median read of the block just read; flush alike, a command without data"),
    }


def _share(fit: DiskFit, origin: Origin) -> str:
    """Probed share of the size."""
    return f"{min(fit.span_bytes / origin.capacity_bytes, 1):.3g}"
