"""Simulates a device on virtual time, with the requests of a file or of a pattern, and sums it up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.device_models.prices import ListedPrice, PriceList, cost_per_month
from tierwise.device_models.profiles import DeviceProfile
from tierwise.model import executor
from tierwise.model.errors import os_errors
from tierwise.model.output_files import open_output_file
from tierwise.model.units import GB
from tierwise.results.measurements import Latency, StrictModel


class RequestKindFigures(Latency):
    """Figures of one kind of request: service times, from arrival to completion, and rates."""

    per_second: float
    """Requests a second of virtual time."""
    mb_per_s: float
    """Transferred, in 10^6 bytes a second of virtual time."""


class ServiceTimeComparison(StrictModel):
    """The model's service times compared with the measured ones of the requests."""

    measured_mean_us: float
    model_mean_us: float
    demerit: float
    """Root mean square distance between the two distributions, as a share of the measured mean
    (Ruemmler and Wilkes, IEEE Computer 27(3), 1994)."""
    each: float
    """Root mean square difference request by request, as a share of the measured mean."""


class SimulationFigures(Latency):
    """Figures of a simulation; those inherited are of all requests, from arrival to completion."""

    virtual_s: float
    """From the first arrival to the last completion."""
    iops: float
    """Reads and writes a second of virtual time."""
    mb_per_s: float
    """Read and written, in 10^6 bytes a second of virtual time."""
    busy_share: float
    """Share of virtual time with a request outstanding."""
    host_sectors: int
    """Written by requests."""
    medium_sectors: int
    """Written to the medium, without sectors still in a cache at the end."""
    write_amplification: float | None
    """Sectors to the medium for each written by requests; ``None`` if none were."""
    erases: int
    """Erase blocks erased."""
    cpu_s: float
    """CPU time of the simulating thread, without that of reading and writing files."""
    requests_per_cpu_s: float
    """Requests simulated a second of that time."""
    ops: dict[str, RequestKindFigures]
    """By kind: ``read``, ``write``, ``flush``, ``discard``, those that occurred."""
    compared: ServiceTimeComparison | None
    """Against measured times, if the file has a column ``service_us``."""


@dataclass(frozen=True)
class SimulationJob:
    """What to simulate: either ``requests`` or ``preset``.

    Attributes:
        requests: a CSV file, plain or compressed with gzip: ``op,lbn,sectors[,think_ms][,arrival_us]``.
        preset: name of a pattern, such as ``randread-4k``.
        count: how many requests of the preset; 100,000 if neither this nor ``virtual_s`` is given.
        virtual_s: seconds of virtual time that the preset runs.
        depth: requests outstanding at a time; the preset's own or 1 if ``None``.
        open: requests arrive at ``arrival_us``, instead of each after a completion and its ``think_ms``.
        precondition: ``fresh``, ``sequential``, ``random`` or ``random:SHARE``.
        seed: seed of the random number generator.
        times: CSV file to write the time of each request to.
    """

    requests: Path | None = None
    preset: str | None = None
    count: int | None = None
    virtual_s: float | None = None
    depth: int | None = None
    open: bool = False
    precondition: str = "fresh"
    seed: int = 0
    times: Path | None = None


def simulate_job(profile: DeviceProfile, job: SimulationJob) -> SimulationFigures:
    """Simulate a job on a device of this profile."""
    return simulate_compiled_profile(
        _core.parse_profile(profile.text, str(profile.file), profile.library), job
    )


def simulate_compiled_profile(core: _core.Profile, job: SimulationJob) -> SimulationFigures:
    """The same on a compiled profile."""
    with nullcontext() if job.times is None else _times_file(job.times) as times:
        job = replace(job, times=times)
        return SimulationFigures.model_validate_json(
            _core.simulate_device(core, json.dumps(asdict(job), default=str))
        )


@contextmanager
def _times_file(path: Path) -> Iterator[Path]:
    """A path of the file's descriptor, so that nobody else can turn it elsewhere."""
    with os_errors(path, "name a file that can be written"), open_output_file(path, "append", 0o666) as file:
        yield Path(f"/proc/self/fd/{file.fileno()}")


_UNCHECKED = "quoted from memory"
"""Marks a source whose document was not at hand when the number was written down."""


class DeviceFigures(StrictModel):
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


class SourceCounts(StrictModel):
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


class DeviceSummary(StrictModel):
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
    sources: SourceCounts


def summarize_devices(devices: Sequence[DeviceProfile]) -> list[DeviceSummary]:
    """Simulate each device briefly, on all processors."""
    cores = [_core.parse_profile(device.text, str(device.file), device.library) for device in devices]
    prices = PriceList.read()
    content = json.loads(_core.summarize_devices(cores, executor.usable_processors()))
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
        for device, figures in zip(devices, content, strict=True)
    ]


def _cost_per_gb_month(device: DeviceProfile, prices: PriceList) -> float | None:
    cost = cost_per_month(device, prices, device.capacity_bytes)
    return None if cost is None else cost / (device.capacity_bytes / GB)


def _source_of_price(device: DeviceProfile, prices: PriceList) -> dict[str, Any]:
    """Of an array without a price of its own, that of its members."""
    price = prices.of(device)
    if price is None and device.member:
        return _source_of_price(device.member, prices)
    if isinstance(price, ListedPrice):
        return {"price_source": f"{price.source}, {price.date}", "price_checked": price.checked}
    own = device.sources.get("price", "") if price else ""
    return {"price_source": own, "price_checked": price is not None}


def _quality(device: DeviceProfile) -> SourceCounts:
    texts = [*device.sources.values(), *(device.member.sources.values() if device.member else [])]
    estimated = sum(text.startswith("estimated:") for text in texts)
    from_memory = sum(_UNCHECKED in text and not text.startswith("estimated:") for text in texts)
    return SourceCounts(
        documented=len(texts) - estimated - from_memory, from_memory=from_memory, estimated=estimated
    )
