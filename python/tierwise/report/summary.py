"""All runs of one placement, summed up in one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

from tierwise.results import Latency, Record, RoleIo, RunResult, WaitClass
from tierwise.roles import Role
from tierwise.statistics import Interval, median_interval

WAIT_CLASSES: tuple[WaitClass, ...] = (
    "log_sync", "log_lock", "data_read", "data_write", "lock", "cpu", "client", "other",
)  # fmt: skip
"""In the order that charts stack them: what a faster device can take away comes first."""
LOG_WAITS: tuple[WaitClass, ...] = ("log_sync", "log_lock")
PERCENTILES = {"p50": "p50_us", "p95": "p95_us", "p99": "p99_us", "p99.9": "p999_us", "max": "max_us"}


class Spread(Record):
    """Median, least and greatest of a few repeats."""

    median: float
    least: float
    most: float


class RoleRow(Record):
    """I/O of one role: medians over the valid runs. What no device told is ``None``."""

    role: Role
    device: str
    reads: float
    writes: float
    flushes: float
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
    device_kinds: dict[str, str]
    ok: int
    invalid: int
    failed: int
    problems: list[str]
    elapsed: Interval | None
    rate: Interval | None
    p99_us: Interval | None
    log_wait_share: Interval | None
    client_wait_share: Interval | None
    projection_s: Interval | None
    cpu_s: Interval | None
    log_bytes: Interval | None
    sampling_error: float | None
    """Greatest half-width of a wait share over runs and classes."""
    waits: dict[WaitClass, float]
    latency: dict[str, dict[str, Spread]]
    """Transaction name -> percentile -> µs."""
    io: list[RoleRow]

    @property
    def runs(self) -> int:
        """Runs that ended, whatever their status."""
        return self.ok + self.invalid + self.failed


def summarise(placement: str, runs: Sequence[RunResult], seed: int) -> Summary:
    """Sum up the runs of one placement, at least one, of one engine and setting."""
    valid = [run for run in runs if run.status == "ok"]

    def interval(of: Callable[[RunResult], float | None]) -> Interval | None:
        sample = [value for value in map(of, valid) if value is not None]
        return median_interval(sample, seed=seed) if sample else None

    return Summary(
        placement=placement,
        role_devices=runs[0].role_devices,
        device_kinds={device.name: device.kind for run in runs for device in run.devices},
        ok=len(valid),
        invalid=sum(run.status == "invalid" for run in runs),
        failed=sum(run.status == "failed" for run in runs),
        problems=sorted({problem for run in runs for problem in run.problems if run.status != "ok"}),
        elapsed=interval(lambda run: run.elapsed_s),
        rate=interval(lambda run: run.rate_per_s),
        p99_us=interval(lambda run: run.latency["all"].p99_us if "all" in run.latency else None),
        log_wait_share=interval(lambda run: _share(run, LOG_WAITS)),
        client_wait_share=interval(lambda run: _share(run, ("client",))),
        projection_s=interval(lambda run: run.elapsed_without_log_wait_s),
        cpu_s=interval(lambda run: run.cpu.engine_s if run.cpu else None),
        log_bytes=interval(lambda run: run.log_bytes),
        sampling_error=max(
            (share.sampling_error for run in valid if run.waits for share in run.waits.shares.values()),
            default=None,
        ),
        waits=_mean_waits(valid),
        latency=_latencies(valid),
        io=_role_rows(valid),
    )


def _share(run: RunResult, classes: Iterable[WaitClass]) -> float | None:
    if run.waits is None:
        return None
    return sum(run.waits.shares[kind].share for kind in classes if kind in run.waits.shares)


def _mean_waits(runs: Sequence[RunResult]) -> dict[WaitClass, float]:
    """Means, not medians, so that the shares of a placement still add up to 1."""
    profiles = [run.waits.shares for run in runs if run.waits is not None]
    found = [kind for kind in WAIT_CLASSES if any(kind in shares for shares in profiles)]
    return {kind: fmean(s[kind].share if kind in s else 0.0 for s in profiles) for kind in found}


def _latencies(runs: Sequence[RunResult]) -> dict[str, dict[str, Spread]]:
    names = {name: None for run in runs for name in run.latency}
    return {name: _percentiles([run.latency[name] for run in runs if name in run.latency]) for name in names}


def _percentiles(latencies: Sequence[Latency]) -> dict[str, Spread]:
    values = {name: [getattr(one, field) for one in latencies] for name, field in PERCENTILES.items()}
    return {name: Spread(median=median(v), least=min(v), most=max(v)) for name, v in values.items()}


def _role_rows(runs: Sequence[RunResult]) -> list[RoleRow]:
    found = [role for role in Role if any(role in run.io for run in runs)]
    return [_role_row(role, [run for run in runs if role in run.io]) for role in found]


def _role_row(role: Role, runs: Sequence[RunResult]) -> RoleRow:
    def middle(of: Callable[[RoleIo, RunResult], float | None]) -> float | None:
        values = [value for run in runs if (value := of(run.io[role], run)) is not None]
        return median(values) if values else None

    def total(of: Callable[[RoleIo], float]) -> float:
        return median(of(run.io[role]) for run in runs)

    return RoleRow(
        role=role,
        device=runs[0].io[role].device,
        reads=total(lambda io: io.reads),
        writes=total(lambda io: io.writes),
        flushes=total(lambda io: io.flushes),
        read_bytes=total(lambda io: io.read_bytes),
        write_bytes=total(lambda io: io.write_bytes),
        mean_read_bytes=middle(lambda io, _: io.read_bytes / io.reads if io.reads else None),
        mean_write_bytes=middle(lambda io, _: io.write_bytes / io.writes if io.writes else None),
        busy_share=middle(lambda io, run: _over(io.busy_s, run.elapsed_s)),
        queue_depth=middle(lambda io, _: io.queue_depth_mean),
        read_p50_us=middle(lambda io, _: io.read_latency.p50_us if io.read_latency else None),
        read_p99_us=middle(lambda io, _: io.read_latency.p99_us if io.read_latency else None),
        write_p50_us=middle(lambda io, _: io.write_latency.p50_us if io.write_latency else None),
        write_p99_us=middle(lambda io, _: io.write_latency.p99_us if io.write_latency else None),
        flush_p50_us=middle(lambda io, _: io.flush_latency.p50_us if io.flush_latency else None),
        flush_p99_us=middle(lambda io, _: io.flush_latency.p99_us if io.flush_latency else None),
    )


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
