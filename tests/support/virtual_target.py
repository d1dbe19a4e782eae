"""A target of the probe that serves on virtual time, from the model of a profile."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tierwise.device_models.device_simulation import SimulationFigures, SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import PatternResult
from tierwise.results.measurements import Latency


class VirtualTarget:
    """As ``_core.ProbeTarget``, without a host: each run begins with an idle device."""

    engine = "io_uring"

    def __init__(self, profile: DeviceProfile, span_bytes: int | None = None) -> None:
        self.profile = profile
        self.size_bytes = span_bytes or profile.capacity_bytes

    def measure(self, pattern: str, seconds: float, seed: int) -> str:
        served = simulate_job(self.profile, SimulationJob(preset=pattern, virtual_s=seconds, seed=seed))
        return result(served).model_dump_json()

    def trace(
        self, requests: Sequence[tuple[str, int, int]], depth: int, seconds: float
    ) -> list[tuple[int, int, int]]:
        with tempfile.TemporaryDirectory() as directory:
            asked, times = Path(directory, "asked.csv"), Path(directory, "times.csv")
            lines = [f"{op},{first // SECTOR_BYTES},{size // SECTOR_BYTES}" for op, first, size in requests]
            asked.write_text("\n".join(["op,lbn,sectors", *lines, ""]))
            simulate_job(self.profile, SimulationJob(requests=asked, depth=depth, times=times))
            with times.open() as file:
                rows = [(float(row["arrival_us"]), float(row["service_us"])) for row in csv.DictReader(file)]
        return [
            (number, round(start * 1e3), round((start + took) * 1e3))
            for number, (start, took) in enumerate(rows)
            if start < seconds * 1e6
        ]


def result(served: SimulationFigures) -> PatternResult:
    """What a probe would report of this."""
    latencies = {
        op: Latency.model_validate({name: getattr(figures, name) for name in Latency.model_fields})
        for op, figures in served.ops.items()
    }
    return PatternResult(
        requests=sum(figures.count for op, figures in served.ops.items() if op != "flush"),
        bytes=round(served.mb_per_s * served.virtual_s * 1e6),
        elapsed_s=served.virtual_s,
        **latencies,
    )
