"""All runs of one placement, summarised in one row, with the price of the placement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean, median

from tierwise.advise.costs import PlacementCosts
from tierwise.device_models import profiles
from tierwise.lab.analysis.measures import (
    LOG_WAITS,
    MeasuredPart,
    measure_medians,
    measured_s,
    wait_share,
    whole_run_part,
)
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key
from tierwise.model.placement import Role
from tierwise.model.statistics import Interval, mean_half_width, median_interval
from tierwise.results import DeviceInfo, Latency, RoleIo, RunResult, StrictModel, WaitClass, WaitProfile

UNATTRIBUTED = "unattributed"
"""Row name for I/O without a role: file system journal and metadata, other programs' files, all flushes."""


class IoRow(StrictModel):
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


Of = Callable[[RoleIo, float | None], float | None]
"""How a run tells a field of a row, given its seconds."""


def _latency(kind: str, percentile: str) -> Of:
    def of(io: RoleIo, _: float | None) -> float | None:
        latency: Latency | None = getattr(io, f"{kind}_latency")
        return getattr(latency, f"{percentile}_us") if latency else None

    return of


_FIGURES: dict[str, Of] = {
    "reads": lambda io, _: io.reads,
    "mean_read_bytes": lambda io, _: _over(io.read_bytes, io.reads),
    "writes": lambda io, _: io.writes,
    "mean_write_bytes": lambda io, _: _over(io.write_bytes, io.writes),
    "flushes": lambda io, _: io.flushes,
    "read_bytes": lambda io, _: io.read_bytes,
    "write_bytes": lambda io, _: io.write_bytes,
    "busy_share": lambda io, elapsed_s: _over(io.busy_s, elapsed_s),
    "queue_depth": lambda io, _: io.queue_depth_mean,
} | {
    f"{kind}_{percentile}_us": _latency(kind, percentile)
    for kind in ("read", "write", "flush")
    for percentile in ("p50", "p99")
}
"""Fields of a row."""


def device_io_rows(
    runs: Sequence[RunResult], name: str, of: Callable[[DeviceInfo], RoleIo | None]
) -> list[IoRow]:
    """A row for each device of which ``of`` is known."""
    role_ios = group_by_key(
        (device.name, (io, run)) for run in runs for device in run.devices if (io := of(device)) is not None
    )
    return [_row(name, parts) for _, parts in sorted(role_ios.items())]


def _row(name: str, parts: Sequence[tuple[RoleIo, RunResult]]) -> IoRow:
    figures = {
        field: median_of_known(of(io, measured_s(run)) for io, run in parts) for field, of in _FIGURES.items()
    }
    return IoRow.model_validate({"name": name, "device": parts[0][0].device, **figures})


def median_of_known(values: Iterable[float | None]) -> float | None:
    """Median of the known values, if any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def shared_device_notes(runs: Sequence[RunResult]) -> list[str]:
    """One sentence for each real device that roles share, about its worst run."""
    device_infos: dict[str, DeviceInfo] = {}
    for device in (device for run in runs for device in run.devices):
        if device.untraced is not None or device.not_by_role is not None:
            device_infos[device.name] = max(
                device_infos.get(device.name, device), device, key=_untraced_share
            )
    return [_note(device) for _, device in sorted(device_infos.items())]


def _note(device: DeviceInfo) -> str:
    if device.not_by_role is not None:
        return f"roles share {device.name}, which is counted as a whole: {device.not_by_role}."
    return (
        f"roles that share {device.name} are told apart by where their files lie; with what is unattributed "
        f"they differ from the kernel’s counters by {numbers.percent_text(_untraced_share(device))} of its "
        "bytes."
    )


def _untraced_share(device: DeviceInfo) -> float:
    """Bytes known only to the counters, or only to the events, over all bytes by the counters."""
    if device.untraced is None or device.io is None:
        return 0.0
    missed, counted = (io.read_bytes + io.write_bytes for io in (device.untraced, device.io))
    return abs(missed) / max(counted, 1)


Moved = dict[str, list[Role]]
"""Device -> roles that the baseline keeps elsewhere."""


def moved_roles(run: RunResult, baseline: RunResult, same_device: Mapping[str, str]) -> Moved:
    """Roles on another device than in the baseline, by their new device; see :func:`device_aliases`."""
    return group_by_key(
        (device, role)
        for role, device in run.role_devices.items()
        if (before := baseline.role_devices.get(role)) is not None
        and same_device.get(device, device) != same_device.get(before, before)
    )


def all_moved_roles(moved: Moved) -> set[Role]:
    """All roles that moved, to any device."""
    return {role for roles in moved.values() for role in roles}


def device_aliases(runs: Iterable[RunResult]) -> dict[str, str]:
    """Real devices, each with a common name of those that are one: one directory, or one file system."""
    known: dict[str, str] = {}
    paths: dict[str, str] = {}
    for device in (device for run in runs for device in run.devices if device.kind == "real"):
        known.setdefault(device.name, device.name)
        first = paths.setdefault(device.path, device.name) if device.path else device.name
        for other in (first, device.same_device_as or first):
            old, new = known[device.name], known.setdefault(other, other)
            known = {name: new if common == old else common for name, common in known.items()}
    return known


def cost_per_month(run: RunResult, among: Collection[str] | None = None) -> float | None:
    """US dollars a month for devices that hold files of a run; ``None`` if one has no price.

    Two devices of one profile are two purchases, so each is priced by itself. Sizes are those of the files
    that the run left or, of a log, of what it wrote. ``advise.costs`` has the model. Only the devices named
    in ``among`` count, if it is given.
    """
    costs = PlacementCosts({role: proof.written_bytes or 0 for role, proof in run.proof.items()})
    used = {
        device.name: device
        for device in run.devices
        if device.roles and (among is None or device.name in among)
    }
    prices = []
    for device in used.values():
        # Another profile may have a name like that of one that ships; a path is not for a report to read.
        if device.own_profile or device.profile is None or device.profile not in profiles.profile_names():
            return None
        try:
            prices.append(costs.cost_per_month(dict.fromkeys(device.roles, device.profile)))
        except TierwiseError:
            return None
    return sum(prices)


def moves_files_to_memory(run: RunResult, moved: Moved) -> bool:
    """Whether a placement moves files to memory, temporary ones aside: a power cut loses them."""
    memory = {device.name for device in run.devices if device.kind == "ram"}
    return any(device in memory and set(roles) - {Role.TEMP} for device, roles in moved.items())


WAIT_CLASSES: tuple[WaitClass, ...] = (
    "log_sync", "log_lock", "data_read", "data_write", "lock", "cpu", "client", "other",
)  # fmt: skip
"""Wait classes in the stacking order of charts: those that a faster device can remove come first."""
PERCENTILES = {"p50": "p50_us", "p95": "p95_us", "p99": "p99_us", "p99.9": "p999_us", "max": "max_us"}


class RepeatSpread(StrictModel):
    """Median, least and greatest of a few repeats."""

    median: float
    least: float
    most: float


class PlacementSummary(StrictModel):
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
    """Mean share, as in ``waits``; likewise of the next."""
    client_wait_share: Interval | None
    projection_s: Interval | None
    medians: dict[str, float]
    """Medians of every measure and score that a valid run has, by name; means of shares of session time."""
    amplification: dict[str, float]
    """Bytes written per requested byte, by writer: file system, flash above 1."""
    scores: dict[str, Interval]
    """Metrics that the workload defines."""
    sampling_error: float | None
    """Greatest half-width of a wait share over runs and classes."""
    waits: dict[WaitClass, float]
    latency: dict[str, dict[str, RepeatSpread]]
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
        rows = [row for row in self.io if row.busy_share is not None]
        by_role = {row.device for row in rows}
        whole = [row for row in self.device_io if row.device not in by_role]
        return rows + [row.model_copy(update={"name": row.device}) for row in whole]

    @property
    def stopped(self) -> bool:
        """Whether its times are lower bounds."""
        return self.capped > 0

    @property
    def runs(self) -> int:
        """Runs that ended, whatever their status."""
        return self.ok + self.invalid + self.failed


def summarise_placement(placement: str, runs: Sequence[RunResult], seed: int) -> PlacementSummary:
    """Sum up the runs of one placement, at least one, of one engine and setting."""
    valid = [run for run in runs if run.status == "ok"]
    parts = [whole_run_part(run) for run in valid]
    capped = sum(part.capped for part in parts)
    medians = measure_medians(parts)
    by_role = {role: [(run.io[role], run) for run in valid if role in run.io] for role in Role}
    role_rows = [_row(role.value, ios) for role, ios in by_role.items() if ios]

    def interval(of: Callable[[MeasuredPart], float | None], capped: bool = False) -> Interval | None:
        sample = [value for value in map(of, parts) if value is not None]
        return median_interval(sample, seed=seed, capped=capped) if sample else None

    return PlacementSummary(
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
        log_wait_share=_mean_share(parts, LOG_WAITS),
        client_wait_share=_mean_share(parts, ("client",)),
        projection_s=interval(lambda part: part.projection_s),
        medians=medians,
        amplification=_by_device(valid, medians),
        scores={
            name: median_interval([part.scores[name] for part in parts if name in part.scores], seed=seed)
            for name in dict.fromkeys(name for part in parts for name in part.scores)
        },
        sampling_error=max(
            (share.sampling_error for run in valid if run.waits for share in run.waits.shares.values()),
            default=None,
        ),
        waits=mean_wait_shares([run.waits for run in valid if run.waits]),
        latency=_latencies(valid),
        io=[*role_rows, *device_io_rows(valid, UNATTRIBUTED, lambda device: device.unattributed)],
        device_io=device_io_rows(valid, "whole device", lambda device: device.io),
        io_notes=shared_device_notes(valid),
    )


def _by_device(runs: Sequence[RunResult], medians: Mapping[str, float]) -> dict[str, float]:
    at_devices = medians.get("write amplification")
    ratios = {"devices’ over engine’s writes": at_devices} if at_devices is not None else {}
    flash = {
        device.name: [d.write_amplification for run in runs for d in run.devices if d.name == device.name]
        for run in runs
        for device in run.devices
    }
    inside = {name: median_of_known(values) for name, values in flash.items()}
    return ratios | {f"inside {name}": ratio for name, ratio in inside.items() if ratio and ratio > 1}


def _mean_share(parts: Sequence[MeasuredPart], classes: Sequence[WaitClass]) -> Interval | None:
    shares = [share for part in parts if (share := wait_share(part, classes)) is not None]
    if not shares:
        return None
    mean, half_width = fmean(shares), mean_half_width(shares)
    if len(shares) == 1:
        return Interval(mean, None, None, 1)
    return Interval(mean, max(mean - half_width, 0.0), min(mean + half_width, 1.0), len(shares))


def mean_wait_shares(profiles: Sequence[WaitProfile]) -> dict[WaitClass, float]:
    """Means, not medians, so that the shares of a placement still add up to 1."""
    kinds = [kind for kind in WAIT_CLASSES if any(kind in profile.shares for profile in profiles)]
    return {
        kind: fmean(profile.shares[kind].share if kind in profile.shares else 0.0 for profile in profiles)
        for kind in kinds
    }


def _latencies(runs: Sequence[RunResult]) -> dict[str, dict[str, RepeatSpread]]:
    latencies = group_by_key((name, latency) for run in runs for name, latency in run.latency.items())
    return {
        name: {
            percentile: RepeatSpread(median=median(us), least=min(us), most=max(us))
            for percentile, field in PERCENTILES.items()
            if (us := [getattr(latency, field) for latency in several])
        }
        for name, several in latencies.items()
    }
