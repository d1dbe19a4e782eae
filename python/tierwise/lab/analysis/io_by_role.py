"""I/O by role: the figures of each role and device, and how far they can be relied on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from tierwise.lab.analysis.measures import measured_s
from tierwise.model import numbers
from tierwise.model.placement import Role
from tierwise.results import DeviceInfo, Latency, Record, RoleIo, RunResult

UNATTRIBUTED = "unattributed"
"""Row name for I/O without a role: file system journal and metadata, other programs' files, all flushes."""


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


def role_rows(runs: Sequence[RunResult]) -> list[IoRow]:
    """A row for each role, then one for the I/O without a role of each device."""
    by_role = {role: [(run.io[role], run) for run in runs if role in run.io] for role in Role}
    rows = [_row(role.value, parts) for role, parts in by_role.items() if parts]
    return [*rows, *device_rows(runs, UNATTRIBUTED, lambda device: device.unattributed)]


def device_rows(
    runs: Sequence[RunResult], name: str, of: Callable[[DeviceInfo], RoleIo | None]
) -> list[IoRow]:
    """A row for each device of which ``of`` is known."""
    role_ios: dict[str, list[tuple[RoleIo, RunResult]]] = {}
    for run in runs:
        for device in run.devices:
            if (io := of(device)) is not None:
                role_ios.setdefault(device.name, []).append((io, run))
    return [_row(name, parts) for _, parts in sorted(role_ios.items())]


def _row(name: str, parts: Sequence[tuple[RoleIo, RunResult]]) -> IoRow:
    figures = {field: middle(of(io, measured_s(run)) for io, run in parts) for field, of in _FIGURES.items()}
    return IoRow.model_validate({"name": name, "device": parts[0][0].device, **figures})


def middle(values: Iterable[float | None]) -> float | None:
    """Median of the known values, if any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def io_notes(runs: Sequence[RunResult]) -> list[str]:
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
        f"they differ from the kernel’s counters by {numbers.percent(_untraced_share(device))} of its bytes."
    )


def _untraced_share(device: DeviceInfo) -> float:
    """Bytes known only to the counters, or only to the events, over all bytes by the counters."""
    if device.untraced is None or device.io is None:
        return 0.0
    missed, counted = (io.read_bytes + io.write_bytes for io in (device.untraced, device.io))
    return abs(missed) / max(counted, 1)
