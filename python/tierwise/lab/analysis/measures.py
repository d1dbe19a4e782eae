"""Measures of a run or a lap, by the names that reports, studies and comparisons use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Literal

from tierwise.model.placement import Role
from tierwise.results import Counters, LapResult, Latency, RoleIo, RunResult, WaitClass, WaitProfile

LOG_WAITS: tuple[WaitClass, ...] = ("log_sync", "log_lock")
_NO_WAITS = frozenset[WaitClass]({"cpu", "client"})

Kind = Literal["seconds", "bytes", "count", "share", "rate", "score"]
"""Kind of a value, which determines its format."""


@dataclass(frozen=True)
class MeasuredPart:
    """A run or a lap, in one form. ``capped``: it was stopped, so its time is less than it needed."""

    elapsed_s: float | None
    capped: bool = False
    transactions: int | None = None
    rate_per_s: float | None = None
    latency: Latency | None = None
    cpu_s: float | None = None
    projection_s: float | None = None
    counters: Counters = field(default_factory=Counters)
    waits: WaitProfile | None = None
    io: Mapping[Role, RoleIo] = field(default_factory=dict)
    total_io: Sequence[RoleIo] = ()
    """I/O of all devices: by role, or of whole devices if roles cannot be told apart."""
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A named figure: ``of`` takes it from a part, in seconds, bytes, numbers or shares of 1."""

    title: str
    kind: Kind
    of: Callable[[MeasuredPart], float | None]


def measured_s(run: RunResult) -> float | None:
    """Measured time of a run: until it ended, or until it could no longer succeed."""
    return run.elapsed_s if run.elapsed_s is not None else run.elapsed_at_least_s


def whole_run_part(run: RunResult) -> MeasuredPart:
    """A whole run."""
    counters = run.counters or Counters()
    return MeasuredPart(
        elapsed_s=measured_s(run),
        capped=run.elapsed_at_least_s is not None,
        transactions=run.transactions,
        rate_per_s=run.rate_per_s,
        latency=run.latency.get("all"),
        cpu_s=run.cpu.engine_s if run.cpu else counters.cpu_s,
        projection_s=run.elapsed_without_log_wait_s,
        counters=counters,
        waits=run.waits,
        io=run.io,
        total_io=_total_io(run),
        scores=run.scores,
    )


def _total_io(run: RunResult) -> list[RoleIo]:
    """I/O with each device once: by role plus I/O without a role, or as a whole."""
    first = {device.name: device.same_device_as or device.name for device in run.devices}
    by_role = {first.get(io.device, io.device) for io in run.io.values()}
    whole = [
        device.io
        for device in run.devices
        if device.io and not device.same_device_as and device.name not in by_role
    ]
    return [*run.io.values(), *(device.unattributed for device in run.devices if device.unattributed), *whole]


def lap_part(lap: LapResult) -> MeasuredPart:
    """One lap."""
    counters = lap.counters or Counters()
    done = lap.transactions
    return MeasuredPart(
        elapsed_s=lap.elapsed_s,
        capped=lap.status == "capped",
        transactions=done,
        rate_per_s=done / lap.elapsed_s if done and lap.elapsed_s else None,
        latency=lap.latency,
        cpu_s=counters.cpu_s,
        counters=counters,
        waits=lap.waits,
        io=lap.io,
        total_io=list(lap.io.values()),
    )


def wait_share(part: MeasuredPart, classes: Iterable[WaitClass]) -> float | None:
    """Share of session time in some classes."""
    if part.waits is None:
        return None
    return sum(part.waits.shares[kind].share for kind in classes if kind in part.waits.shares)


def _wait_s(part: MeasuredPart) -> float | None:
    """Summed time in which sessions neither ran nor waited for their client."""
    if part.waits is None or not part.waits.ticks or part.elapsed_s is None:
        return None
    sessions = part.waits.samples / part.waits.ticks
    waiting = wait_share(part, (kind for kind in part.waits.shares if kind not in _NO_WAITS)) or 0.0
    return part.elapsed_s * sessions * waiting


def _io_bytes(part: MeasuredPart, field_name: str) -> float | None:
    return sum(getattr(io, field_name) for io in part.total_io) if part.total_io else None


def _log_requests_per_s(part: MeasuredPart) -> float | None:
    log = part.io.get(Role.LOG)
    return (log.reads + log.writes) / part.elapsed_s if log and part.elapsed_s else None


def _pages_bytes(part: MeasuredPart) -> float | None:
    counters = part.counters
    if counters.pages_written is None or counters.page_bytes is None:
        return None
    return counters.pages_written * counters.page_bytes


def _mean_write_bytes(part: MeasuredPart) -> float | None:
    pages_bytes, requests = _pages_bytes(part), part.counters.physical_writes
    return pages_bytes / requests if pages_bytes is not None and requests else None


def _amplification(part: MeasuredPart) -> float | None:
    """Bytes written to the devices over bytes written by the engine: pages, log and temporary files."""
    to_devices, pages_bytes = _io_bytes(part, "write_bytes"), _pages_bytes(part)
    if to_devices is None or pages_bytes is None or part.counters.log_bytes is None:
        return None
    by_engine = pages_bytes + part.counters.log_bytes + (part.counters.temp_bytes or 0)
    return to_devices / by_engine if by_engine else None


def _counter(name: str) -> Callable[[MeasuredPart], float | None]:
    return lambda part: getattr(part.counters, name)


MEASURES: dict[str, Measure] = {
    "elapsed": Measure("Elapsed", "seconds", lambda part: part.elapsed_s),
    "rate": Measure("Transactions a second", "rate", lambda part: part.rate_per_s),
    "p99 latency": Measure(
        "p99 latency", "seconds", lambda part: part.latency.p99_us / 1e6 if part.latency else None
    ),
    "log wait share": Measure("Log wait", "share", lambda part: wait_share(part, LOG_WAITS)),
    "client wait share": Measure("Waiting for client", "share", lambda part: wait_share(part, ("client",))),
    "elapsed without log wait": Measure("Without log wait", "seconds", lambda part: part.projection_s),
    "log bytes": Measure("Log", "bytes", _counter("log_bytes")),
    "doublewrite bytes": Measure("Pages written twice", "bytes", _counter("doublewrite_bytes")),
    "cpu": Measure("CPU", "seconds", lambda part: part.cpu_s),
    "wait": Measure("Waits of all sessions", "seconds", _wait_s),
    "physical reads": Measure("Physical reads", "count", _counter("physical_reads")),
    "pages read": Measure("Pages read", "count", _counter("pages_read")),
    "physical writes": Measure("Physical writes", "count", _counter("physical_writes")),
    "pages written": Measure("Pages written", "count", _counter("pages_written")),
    "mean write size": Measure("Mean size of a write", "bytes", _mean_write_bytes),
    "bytes written": Measure("Written to devices", "bytes", lambda part: _io_bytes(part, "write_bytes")),
    "bytes read": Measure("Read from devices", "bytes", lambda part: _io_bytes(part, "read_bytes")),
    "write amplification": Measure("Devices’ over engine’s writes", "score", _amplification),
    "logical reads": Measure("Logical reads", "count", _counter("logical_reads")),
    "temp bytes": Measure("Temporary files", "bytes", _counter("temp_bytes")),
    "commits": Measure("Commits", "count", _counter("commits")),
    "log requests a second": Measure("Log requests a second", "rate", _log_requests_per_s),
}
"""Measures by their name in ``paper.what``; a workload's scores and ``speedup`` are valid there too."""

TIMES_OF_RUNS = frozenset({"elapsed", "elapsed without log wait"})
"""Measures that cannot be compared between runs of unequal work, such as those of a fixed duration."""

COUNTER_NAMES = [
    name
    for name in MEASURES
    if name not in {"rate", "p99 latency", "log wait share", "client wait share", "elapsed without log wait"}
]
"""Talebzadeh's table of counters, elapsed time first."""


def measure_medians(parts: Sequence[MeasuredPart]) -> dict[str, float]:
    """Median of every measure and score that any part has; the mean of shares, which add up to 1."""
    samples = {name: [measure.of(part) for part in parts] for name, measure in MEASURES.items()}
    for score in dict.fromkeys(name for part in parts for name in part.scores):
        samples[score] = [part.scores.get(score) for part in parts]
    known = {name: [value for value in values if value is not None] for name, values in samples.items()}
    return {
        name: fmean(values) if measure_kind(name) == "share" else median(values)
        for name, values in known.items()
        if values
    }


def measure_kind(name: str) -> Kind:
    """Kind of a measure; any other name is a workload's score."""
    return MEASURES[name].kind if name in MEASURES else "score"


def measure_title(name: str) -> str:
    """Title of a measure or a score."""
    return MEASURES[name].title if name in MEASURES else name.replace("_", " ").capitalize()
