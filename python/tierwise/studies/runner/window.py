"""A window: a span of the measured phase with counters of engine, devices, sessions and machine."""

from __future__ import annotations

from dataclasses import dataclass

from tierwise.engines.base import Engine
from tierwise.host import doctor
from tierwise.results.measurements import Counters, CpuUse, WaitProfile
from tierwise.results.wait_sampling import WaitSampler
from tierwise.studies.runner.recorded import RunRecording
from tierwise.studies.runner.storage import Counted, Storage


@dataclass(frozen=True)
class Window:
    """Counters over ``elapsed_s`` seconds."""

    elapsed_s: float
    engine: Counters
    storage: Counted
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
        engine_s = self.engine.cpu_s - self.engine_sampling_cpu_s
        disks_s = self.storage.cpu_s
        other_s = self.machine_busy_s - engine_s - self.client_cpu_s - (disks_s or 0.0)
        return CpuUse(
            engine_s=engine_s, clients_s=self.client_cpu_s, disks_s=disks_s, other_s=max(other_s, 0.0)
        )


class OpenWindow:
    """Counts from construction to :meth:`close`, or to :meth:`abandon` after a failure."""

    def __init__(
        self, engine: Engine, storage: Storage, recording: RunRecording | None = None, *, waits: bool = True
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

    def close(self, elapsed_s: float, client_cpu_s: float) -> Window:
        """Stop counting; the work took ``elapsed_s`` seconds."""
        counted = self._storage.stop_counting(elapsed_s)
        if self._recording is not None:
            self._recording.end(elapsed_s)
        busy_s = doctor.busy_cpu_s() - self._busy_before_s
        sampler, waits = self._stop_sampling()
        return Window(
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
