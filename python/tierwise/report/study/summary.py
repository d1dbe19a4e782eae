"""All runs of one placement, summarised in one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median

from tierwise.model.roles import Role
from tierwise.model.statistics import Interval, median_interval
from tierwise.report.study.io_notes import UNATTRIBUTED, io_notes
from tierwise.report.study.measures import LOG_WAITS, Part, measured_s, medians_of, run_part, waits_share
from tierwise.results import DeviceInfo, Latency, Record, RoleIo, RunResult, WaitClass, WaitProfile

WAIT_CLASSES: tuple[WaitClass, ...] = (
    "log_sync", "log_lock", "data_read", "data_write", "lock", "cpu", "client", "other",
)  # fmt: skip
"""Wait classes in the stacking order of charts: those that a faster device can remove come first."""
PERCENTILES = {"p50": "p50_us", "p95": "p95_us", "p99": "p99_us", "p99.9": "p999_us", "max": "max_us"}


class Spread(Record):
    """Median, least and greatest of a few repeats."""

    median: float
    least: float
    most: float


class IoRow(Record):
    """I/O of one role or one device: medians over the valid runs. What no device told is ``None``."""

    name: str
    """Name of the role, or of the device's other I/O."""
    device: str
    reads: float
    writes: float
    flushes: float | None
    read_bytes: float
    write_bytes: float
    mean_read_bytes: float | None
    mean_write_bytes: float | None
    busy_share: float | None
    queue_depth: float | None
    read_p50_us: float | None
    read_p99_us: float | None
    write_p50_us: float | None
    write_p99_us: float | None
    flush_p50_us: float | None
    flush_p99_us: float | None


class Summary(Record):
    """Valid runs of one placement. Every measure is ``None`` or empty when no valid run has it."""

    placement: str
    role_devices: dict[Role, str]
    ok: int
    invalid: int
    failed: int
    capped: int
    """Valid runs with a lap that was stopped at the cap: their times are less than they needed."""
    problems: list[str]
    elapsed: Interval | None
    rate: Interval | None
    p99_us: Interval | None
    log_wait_share: Interval | None
    client_wait_share: Interval | None
    projection_s: Interval | None
    medians: dict[str, float]
    """Medians of every measure and score that a valid run has, by name."""
    amplification: dict[str, float]
    """Bytes written per requested byte, by writer: file system, flash above 1."""
    scores: dict[str, Interval]
    """Metrics that the workload defines."""
    sampling_error: float | None
    """Greatest half-width of a wait share over runs and classes."""
    waits: dict[WaitClass, float]
    latency: dict[str, dict[str, Spread]]
    """Transaction name -> percentile -> µs."""
    io: list[IoRow]
    """I/O by role; then I/O without a role on shared real devices."""
    device_io: list[IoRow]
    """I/O of whole real devices."""
    io_notes: list[str]
    """Reliability of I/O by role on such devices, or why there is none."""

    @property
    def busy_io(self) -> list[IoRow]:
        """Rows with a busy share, each device once: by role, or of the whole device."""
        told = [row for row in self.io if row.busy_share is not None]
        by_role = {row.device for row in told}
        whole = [row for row in self.device_io if row.device not in by_role]
        return told + [row.model_copy(update={"name": row.device}) for row in whole]

    @property
    def runs(self) -> int:
        """Runs that ended, whatever their status."""
        return self.ok + self.invalid + self.failed


def summarise(placement: str, runs: Sequence[RunResult], seed: int) -> Summary:
    """Sum up the runs of one placement, at least one, of one engine and setting."""
    valid = [run for run in runs if run.status == "ok"]
    parts = [run_part(run) for run in valid]
    capped = sum(part.capped for part in parts)
    medians = medians_of(parts)

    def interval(of: Callable[[Part], float | None], capped: bool = False) -> Interval | None:
        sample = [value for value in map(of, parts) if value is not None]
        return median_interval(sample, seed=seed, capped=capped) if sample else None

    return Summary(
        placement=placement,
        role_devices=runs[0].role_devices,
        ok=len(valid),
        invalid=sum(run.status == "invalid" for run in runs),
        failed=sum(run.status == "failed" for run in runs),
        capped=capped,
        problems=sorted({problem for run in runs for problem in run.problems if run.status != "ok"}),
        elapsed=interval(lambda part: part.elapsed_s, capped > 0),
        rate=interval(lambda part: None if part.capped else part.rate_per_s),
        p99_us=interval(lambda part: part.latency.p99_us if part.latency else None),
        log_wait_share=interval(lambda part: waits_share(part, LOG_WAITS)),
        client_wait_share=interval(lambda part: waits_share(part, ("client",))),
        projection_s=interval(lambda part: part.projection_s),
        medians=medians,
        amplification=_amplification(valid, medians),
        scores={
            name: median_interval([part.scores[name] for part in parts if name in part.scores], seed=seed)
            for name in dict.fromkeys(name for part in parts for name in part.scores)
        },
        sampling_error=max(
            (share.sampling_error for run in valid if run.waits for share in run.waits.shares.values()),
            default=None,
        ),
        waits=mean_waits([run.waits for run in valid if run.waits]),
        latency=_latencies(valid),
        io=[*_role_rows(valid), *_device_rows(valid, UNATTRIBUTED, lambda device: device.unattributed)],
        device_io=_device_rows(valid, "whole device", lambda device: device.io),
        io_notes=io_notes(valid),
    )


def _amplification(runs: Sequence[RunResult], medians: Mapping[str, float]) -> dict[str, float]:
    at_devices = medians.get("write amplification")
    found = {"devices’ over engine’s writes": at_devices} if at_devices is not None else {}
    flash = {
        device.name: [d.write_amplification for run in runs for d in run.devices if d.name == device.name]
        for run in runs
        for device in run.devices
    }
    medians_inside = {name: _middle(values) for name, values in flash.items()}
    return found | {f"inside {name}": one for name, one in medians_inside.items() if one and one > 1}


def mean_waits(profiles: Sequence[WaitProfile]) -> dict[WaitClass, float]:
    """Means, not medians, so that the shares of a placement still add up to 1."""
    found = [kind for kind in WAIT_CLASSES if any(kind in profile.shares for profile in profiles)]
    return {
        kind: fmean(profile.shares[kind].share if kind in profile.shares else 0.0 for profile in profiles)
        for kind in found
    }


def _latencies(runs: Sequence[RunResult]) -> dict[str, dict[str, Spread]]:
    names = {name: None for run in runs for name in run.latency}
    return {name: _percentiles([run.latency[name] for run in runs if name in run.latency]) for name in names}


def _percentiles(latencies: Sequence[Latency]) -> dict[str, Spread]:
    values = {name: [getattr(one, field) for one in latencies] for name, field in PERCENTILES.items()}
    return {name: Spread(median=median(v), least=min(v), most=max(v)) for name, v in values.items()}


def _role_rows(runs: Sequence[RunResult]) -> list[IoRow]:
    found = [role for role in Role if any(role in run.io for run in runs)]
    return [
        _io_row(role.value, [(run.io[role], measured_s(run)) for run in runs if role in run.io])
        for role in found
    ]


def _device_rows(
    runs: Sequence[RunResult], name: str, of: Callable[[DeviceInfo], RoleIo | None]
) -> list[IoRow]:
    found: dict[str, list[tuple[RoleIo, float | None]]] = {}
    for run in runs:
        for device in run.devices:
            if (io := of(device)) is not None:
                found.setdefault(device.name, []).append((io, measured_s(run)))
    return [_io_row(name, parts) for _, parts in sorted(found.items())]


def _io_row(name: str, parts: Sequence[tuple[RoleIo, float | None]]) -> IoRow:
    several = [io for io, _ in parts]

    def middle(of: Callable[[RoleIo], float | None]) -> float | None:
        return _middle(map(of, several))

    def latency(of: Callable[[RoleIo], Latency | None], field: str) -> float | None:
        return _middle(getattr(found, field) for io in several if (found := of(io)) is not None)

    return IoRow(
        name=name,
        device=several[0].device,
        reads=median(io.reads for io in several),
        writes=median(io.writes for io in several),
        flushes=middle(lambda io: io.flushes),
        read_bytes=median(io.read_bytes for io in several),
        write_bytes=median(io.write_bytes for io in several),
        mean_read_bytes=middle(lambda io: _over(io.read_bytes, io.reads)),
        mean_write_bytes=middle(lambda io: _over(io.write_bytes, io.writes)),
        busy_share=_middle(_over(io.busy_s, elapsed_s) for io, elapsed_s in parts),
        queue_depth=middle(lambda io: io.queue_depth_mean),
        read_p50_us=latency(lambda io: io.read_latency, "p50_us"),
        read_p99_us=latency(lambda io: io.read_latency, "p99_us"),
        write_p50_us=latency(lambda io: io.write_latency, "p50_us"),
        write_p99_us=latency(lambda io: io.write_latency, "p99_us"),
        flush_p50_us=latency(lambda io: io.flush_latency, "p50_us"),
        flush_p99_us=latency(lambda io: io.flush_latency, "p99_us"),
    )


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
