"""A few simulated figures of each device, and how well its numbers are sourced."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tierwise import _core
from tierwise.device_models.billing import cost_per_month
from tierwise.device_models.prices import ListedPrice, Prices
from tierwise.device_models.profiles import Profile
from tierwise.model import processors
from tierwise.results.measurements import Record

_GB = 1e9
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
    def unchecked_share(self) -> float:
        """Share that is from a document that was not at hand, 0 to 1."""
        return self.from_memory / (self.documented + self.from_memory + self.estimated)

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
    cost_per_gb_month: float | None
    """Of 10^9 bytes of the whole device for a month, at the prices that ship, in their currency."""
    price_source: str
    """Where that price is from, and of when; empty without one."""
    price_checked: bool
    """Whether somebody compared it with the source."""
    figures: DeviceFigures
    sources: SourceQuality


def summarize(devices: Sequence[Profile]) -> list[DeviceSummary]:
    """Simulate each device briefly, on all processors."""
    cores = [_core.parse_profile(device.text, str(device.file), device.library) for device in devices]
    prices = Prices.read()
    found = json.loads(_core.summarize_devices(cores, processors.usable()))
    return [
        DeviceSummary(
            name=device.name,
            kind=device.kind,
            summary=device.summary,
            capacity_bytes=device.capacity_bytes,
            cost_per_gb_month=_cost_per_gb_month(device, prices),
            **_source_of_price(device, prices),
            figures=DeviceFigures.model_validate(figures),
            sources=_quality(device),
        )
        for device, figures in zip(devices, found, strict=True)
    ]


def _cost_per_gb_month(device: Profile, prices: Prices) -> float | None:
    cost = cost_per_month(device, prices, device.capacity_bytes)
    return None if cost is None else cost / (device.capacity_bytes / _GB)


def _source_of_price(device: Profile, prices: Prices) -> dict[str, Any]:
    """Of an array without a price of its own, that of its members."""
    price = prices.of(device) or (prices.of(device.member) if device.member else None)
    if isinstance(price, ListedPrice):
        return {"price_source": f"{price.source}, {price.date}", "price_checked": price.checked}
    own = device.sources.get("price", "") if price else ""
    return {"price_source": own, "price_checked": price is not None}


def _quality(device: Profile) -> SourceQuality:
    texts = [*device.sources.values(), *(device.member.sources.values() if device.member else [])]
    estimated = sum(text.startswith("estimated:") for text in texts)
    from_memory = sum(_UNCHECKED in text and not text.startswith("estimated:") for text in texts)
    return SourceQuality(
        documented=len(texts) - estimated - from_memory, from_memory=from_memory, estimated=estimated
    )
