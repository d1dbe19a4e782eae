"""Sources of measurement error: caches between the probe and the medium."""

from __future__ import annotations

from pathlib import Path

from tierwise.host.residency import resident_bytes
from tierwise.probe.place import Place
from tierwise.results.measurements import FlushCheck

_CACHED_SHARE = 0.05


def warnings(place: Place, file: Path | None, size_bytes: int, flush: FlushCheck) -> list[str]:
    """One line for each cache that was, or may have been, measured instead of the medium."""
    found = []
    if file is not None and (resident_bytes(file) or 0) > _CACHED_SHARE * size_bytes:
        found.append("the page cache holds the file though it was opened past it: reads are not the device's")
    if place.memory:
        found.append(f"{place.file_system or place.block} is memory: no storage was measured")
    if place.disks > 1:
        found.append(
            f"{place.disks} physical devices lie under {place.path}: they were measured as one device"
        )
    if place.virtual:
        found.append("the device is virtual: its host may cache reads and writes, and limit their rate")
    if flush.write_cache == "write back" and flush.times.write_4k_us < flush.times.write_flush_4k_us / 2:
        found.append("a volatile write cache takes writes in: without a flush their figures are the cache's")
    if place.rotational and flush.device_class != "disk":
        found.append("flagged as a disk but far too fast for one: a cache before it answers")
    return found
