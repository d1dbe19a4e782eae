"""A window: a span of the measured phase with counters of engine, devices and machine; windows merged.

Counts and times add up. Percentiles do not: several windows have none for a device's requests, and the
deadline overrun is that of the worst window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

from tierwise.host import doctor
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies.runner.run_recording import RunRecording
from tierwise.lab.studies.runner.run_storage import DeviceIoCounts, RunStorage, device_problems
from tierwise.model.placement import Role
from tierwise.results.conditions import DeadlineOverrun, DeviceInfo
from tierwise.results.measurements import Counters, CpuUse, RoleIo, WaitProfile, WaitShare
from tierwise.results.wait_sampling import WaitSampler


@dataclass(frozen=True)
class CounterWindow:
    """Counters over ``elapsed_s`` seconds."""

    elapsed_s: float
    engine: Counters
    storage: DeviceIoCounts
    waits: WaitProfile | None
    client_cpu_s: float
    engine_sampling_cpu_s: float
    """CPU that the engine spent on wait sampling, included in its own figure."""
    machine_busy_s: float

    @property
    def cpu(self) -> CpuUse | None:
        """CPU time by consumer; ``None`` if the engine cannot report its own."""
        if self.engine.cpu_s is None:
            return None
        engine_s = max(self.engine.cpu_s - self.engine_sampling_cpu_s, 0.0)
        disks_s = self.storage.cpu_s
        other_s = self.machine_busy_s - engine_s - self.client_cpu_s - (disks_s or 0.0)
        return CpuUse(
            engine_s=engine_s, clients_s=self.client_cpu_s, disks_s=disks_s, other_s=max(other_s, 0.0)
        )


class OpenCounterWindow:
    """Counts from construction to :meth:`close`, or to :meth:`abandon` after a failure."""

    def __init__(
        self,
        engine: Engine,
        storage: RunStorage,
        recording: RunRecording | None = None,
        *,
        waits: bool = True,
    ) -> None:
        """Read or reset the counters, and start to sample waits, or to record instead.

        The sampler's own session would be part of the recording.
        """
        self._engine, self._storage, self._recording = engine, storage, recording
        self._sampler: WaitSampler | None = engine.sampler() if waits and recording is None else None
        self._before, self._busy_before_s = engine.counters(), doctor.busy_cpu_s()
        storage.start_counting()
        if self._sampler is not None:
            self._sampler.start()
        if recording is not None:
            recording.begin()

    def close(self, elapsed_s: float, client_cpu_s: float) -> CounterWindow:
        """Stop counting; the work took ``elapsed_s`` seconds."""
        counted = self._storage.stop_counting(elapsed_s)
        if self._recording is not None:
            self._recording.end(elapsed_s)
        busy_s = doctor.busy_cpu_s() - self._busy_before_s
        sampler, waits = self._stop_sampling()
        return CounterWindow(
            elapsed_s=elapsed_s,
            engine=self._engine.counters().since(self._before),
            storage=counted,
            waits=waits,
            client_cpu_s=client_cpu_s,
            engine_sampling_cpu_s=sampler.engine_cpu_s if sampler else 0.0,
            machine_busy_s=busy_s,
        )

    def abandon(self) -> None:
        """Stop sampling and recording. No error if both have stopped."""
        self._stop_sampling()
        if self._recording is not None:
            self._recording.end()

    def _stop_sampling(self) -> tuple[WaitSampler | None, WaitProfile | None]:
        sampler, self._sampler = self._sampler, None
        return sampler, sampler.stop() if sampler else None


def merge_windows(windows: Sequence[CounterWindow]) -> CounterWindow:
    """Merge windows into one; there must be at least one."""
    if len(windows) == 1:
        return windows[0]
    elapsed_s = sum(window.elapsed_s for window in windows)
    return CounterWindow(
        elapsed_s=elapsed_s,
        engine=sum_counters([window.engine for window in windows]),
        storage=_total_counted(windows, elapsed_s),
        waits=merge_wait_profiles([window.waits for window in windows if window.waits is not None]),
        client_cpu_s=sum(window.client_cpu_s for window in windows),
        engine_sampling_cpu_s=sum(window.engine_sampling_cpu_s for window in windows),
        machine_busy_s=sum(window.machine_busy_s for window in windows),
    )


def sum_counters(parts: Sequence[Counters]) -> Counters:
    """Sum each counter that all parts have."""
    sums = {name: _sum(getattr(part, name) for part in parts) for name in Counters.model_fields}
    return Counters(**sums).changed(page_bytes=parts[0].page_bytes)


def merge_wait_profiles(parts: Sequence[WaitProfile]) -> WaitProfile | None:
    """Wait profile over all sampled sessions; their sampling errors are independent."""
    samples = sum(part.samples for part in parts)
    if samples == 0:
        return None
    absent = WaitShare(share=0, sampling_error=0)
    shares = {}
    for kind in dict.fromkeys(kind for part in parts for kind in part.shares):
        seen = [(part.samples / samples, part.shares.get(kind, absent)) for part in parts]
        share = sum(weight * wait.share for weight, wait in seen)
        error = hypot(*(weight * wait.sampling_error for weight, wait in seen))
        shares[kind] = WaitShare(share=share, sampling_error=error)
    ticks = sum(part.ticks for part in parts)
    sampled_s = sum(part.ticks / part.rate_hz for part in parts)
    return WaitProfile(ticks=ticks, samples=samples, rate_hz=ticks / sampled_s, shares=shares)


def _total_counted(windows: Sequence[CounterWindow], elapsed_s: float) -> DeviceIoCounts:
    roles = dict.fromkeys(role for window in windows for role in window.storage.io)
    io: dict[Role, RoleIo] = {
        role: _total_io(
            [(window.storage.io[role], window.elapsed_s) for window in windows if role in window.storage.io]
        )
        for role in roles
    }
    each = zip(*(window.storage.devices for window in windows), strict=True)
    times_s = [window.elapsed_s for window in windows]
    devices = [_total_device(same, times_s, elapsed_s) for same in each]
    cpu_s = _sum(window.storage.cpu_s for window in windows)
    return DeviceIoCounts(
        io, devices, cpu_s, [problem for device in devices for problem in device_problems(device)]
    )


_SUMMED = ("reads", "writes", "flushes", "discards", "read_bytes", "write_bytes", "busy_s")


def _total_io(parts: Sequence[tuple[RoleIo, float]]) -> RoleIo:
    ios, elapsed_s = [io for io, _ in parts], sum(time_s for _, time_s in parts)
    depth_s = _sum(None if io.queue_depth_mean is None else io.queue_depth_mean * s for io, s in parts)
    sums = {name: _sum(getattr(io, name) for io in ios) for name in _SUMMED}
    mean = depth_s / elapsed_s if depth_s is not None and elapsed_s else None
    return type(ios[0])(device=ios[0].device, queue_depth_mean=mean, **sums)


def _total_device(same: Sequence[DeviceInfo], times_s: Sequence[float], elapsed_s: float) -> DeviceInfo:
    def timed(name: str) -> list[tuple[Any, float]]:
        parts = ((getattr(info, name), s) for info, s in zip(same, times_s, strict=True))
        return [(part, s) for part, s in parts if part is not None]

    late = timed("deadline_overrun")
    ios = {name: timed(name) for name in ("io", "unattributed", "untraced")}
    return same[0].changed(
        deadline_overrun=_total_overrun(late, elapsed_s) if late else None,
        **{name: _total_io(parts) if parts else None for name, parts in ios.items()},
    )


def _total_overrun(parts: Sequence[tuple[DeadlineOverrun, float]], elapsed_s: float) -> DeadlineOverrun:
    worst = {name: max(getattr(late, name) for late, _ in parts) for name in ("p50_us", "p99_us", "max_us")}
    share = sum(late.share * s for late, s in parts) / elapsed_s if elapsed_s else 0.0
    return DeadlineOverrun(**worst, share=share, bound_share=parts[0][0].bound_share)


def _sum(values: Iterable[Any]) -> Any:
    """The sum, or ``None`` if one of the values is absent."""
    given = list(values)
    present = [value for value in given if value is not None]
    return sum(present) if len(present) == len(given) else None
