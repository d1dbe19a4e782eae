"""A run of access patterns on one device: a device benchmark in place of a database."""

from __future__ import annotations

import platform
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

from tierwise import _core
from tierwise.host import cpu
from tierwise.lab.studies.runner.run_storage import DeviceIoCounts, RunStorage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.model.placement import Role
from tierwise.probe.flush_check import check_flush
from tierwise.probe.probe_samples import sample_flush, sample_patterns
from tierwise.probe.probe_target import choose_probe_file_bytes, inspect_probe_target
from tierwise.results import EngineInfo, RunResult
from tierwise.results.measurements import FlushCheck, PatternResult

FILE_BYTES = 1 << 30
"""Same size as CrystalDiskMark's file, if the partition is large enough."""
_FLUSH_SHARE = 0.2


@dataclass(frozen=True)
class MeasuredPatterns:
    """Results of the measured phase."""

    patterns: dict[str, PatternResult]
    flush: FlushCheck
    storage: DeviceIoCounts

    @property
    def requests(self) -> int:
        """Reads and writes of all patterns."""
        return sum(pattern.requests for pattern in self.patterns.values())

    @property
    def elapsed_s(self) -> float:
        """Time of all patterns."""
        return sum(pattern.elapsed_s for pattern in self.patterns.values())

    def record(self, prepared: RunResult) -> RunResult:
        """The run's record."""
        return prepared.changed(
            status="invalid" if self.storage.problems else "ok",
            problems=self.storage.problems,
            devices=self.storage.devices,
            elapsed_s=self.elapsed_s,
            transactions=self.requests,
            rate_per_s=self.requests / self.elapsed_s,
            errors=0,
            io=self.storage.io,
            patterns=self.patterns,
            flush=self.flush,
        )


def pattern_engine_info() -> EngineInfo:
    """Engine information for a run without a database server."""
    return EngineInfo(name="file", version=platform.release(), settings={"requests": _core.probe_engine()})


def prepare_pattern_file(storage: RunStorage, undo: ExitStack) -> _core.ProbeTarget:
    """Create a fully written file on the data device; an emulated device writes it at memory speed.

    Raises:
        TierwiseError: if the device lacks space or direct I/O.
    """
    directory = storage.places[Role.DATA]
    size_bytes = choose_probe_file_bytes(inspect_probe_target(directory), None, FILE_BYTES)
    storage.set_timing(False)
    target = _core.ProbeTarget.create(str(directory / "file"), size_bytes)
    undo.callback(target.close)
    target.fill()
    storage.set_timing(True)
    return target


def measure_patterns(
    study: Study, plan: RunPlan, storage: RunStorage, target: _core.ProbeTarget
) -> MeasuredPatterns:
    """Every pattern of the study once, reads first, and the flush check, in the study's seconds."""
    seconds = study.seconds or 0.0
    random = Random(plan.seed)
    storage.start_counting()
    with cpu.raised_priority():
        patterns_s = (1 - _FLUSH_SHARE) * seconds
        taken = sample_patterns(target, study.patterns, 1, patterns_s, random, lambda _: None)
        times = sample_flush(target, _FLUSH_SHARE * seconds, random)
    patterns = {name: taken[name][0] for name in study.patterns}
    # Summed time that requests spent in the device: the time that deadline overrun can lengthen.
    in_flight_s = sum(
        latency.count * latency.mean_us / 1e6
        for pattern in patterns.values()
        for latency in (pattern.read, pattern.write, pattern.flush)
        if latency is not None
    )
    counted = storage.stop_counting(in_flight_s)
    return MeasuredPatterns(
        patterns, check_flush(times, inspect_probe_target(storage.places[Role.DATA])), counted
    )
