"""A few simulated figures of each device, and how well its numbers are sourced."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Sequence

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.profiles import Profile
from tierwise.results.measurements import Record

_UNCHECKED = "quoted from memory"
"""Marks a source whose document was not at hand when the number was written down."""


class DeviceFigures(Record):
    """Performance of a device after long use.

    Sequential figures: every sector was written once in order. Others: the steady state of random writes; a
    volume has spent its credits.
    """

    sequential_read_mb_per_s: float
    """1 MiB, 8 outstanding."""
    sequential_write_mb_per_s: float
    random_read_iops: float
    """4 KiB, 1 outstanding."""
    random_read_qd32_iops: float
    random_write_iops: float
    random_write_qd32_iops: float
    write_flush_us: float
    """Mean time of appending 8 KiB and flushing."""
    cached_writes: bool
    """Whether some writes still went to a cache with free space: more of them would be slower."""


class SourceQuality(Record):
    """Number of entries of ``[source]`` of each kind, including those of an array's members."""

    documented: int
    """By definition, measured, or from a document."""
    from_memory: int
    """From a document that was quoted from memory."""
    estimated: int

    @property
    def sourced_share(self) -> float:
        """Share that is not estimated, 0 to 1."""
        return 1 - self.estimated / (self.documented + self.from_memory + self.estimated)


class DeviceSummary(Record):
    """A profile and the figures of its model."""

    name: str
    kind: str
    summary: str
    capacity_bytes: int
    usd_per_gb_month: float | None
    figures: DeviceFigures
    sources: SourceQuality


def summarize(devices: Sequence[Profile]) -> list[DeviceSummary]:
    """Simulate each device briefly, on all processors."""
    cores = [_core.parse_profile(device.text, str(device.file), device.library) for device in devices]
    found = json.loads(_core.summarize_devices(cores, os.cpu_count() or 1))
    return [
        DeviceSummary(
            name=device.name,
            kind=device.kind,
            summary=device.summary,
            capacity_bytes=device.capacity_bytes,
            usd_per_gb_month=device.usd_per_gb_month,
            figures=DeviceFigures.model_validate(figures),
            sources=_quality(device),
        )
        for device, figures in zip(devices, found, strict=True)
    ]


def _quality(device: Profile) -> SourceQuality:
    texts = [*device.sources.values(), *(text for one in _members(device) for text in one.sources.values())]
    estimated = sum(text.startswith("estimated:") for text in texts)
    from_memory = sum(_UNCHECKED in text and not text.startswith("estimated:") for text in texts)
    return SourceQuality(
        documented=len(texts) - estimated - from_memory, from_memory=from_memory, estimated=estimated
    )


def _members(device: Profile) -> list[Profile]:
    """The devices that an array consists of, each kind once."""
    name = tomllib.loads(device.text).get("member")
    if name is None:
        return []
    return [profiles.parse(device.library[name], device.file.with_name(f"{name}.toml"))]
