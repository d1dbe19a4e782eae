"""May these results be believed: noise, lateness of emulated devices, foreign CPU, errors, runs left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from tierwise.results import Record, RunResult
from tierwise.statistics import coefficient_of_variation, median_absolute_deviation


class Point(Record):
    """One run as a dot on a chart. ``elapsed_s`` is absent where the run broke off."""

    order: int
    repeat: int
    status: Literal["ok", "invalid", "failed"]
    elapsed_s: float | None


class Noise(Record):
    """Spread of the elapsed time over the valid runs of one placement; shares are of 1."""

    placement: str
    runs: int
    variation: float | None
    """Coefficient of variation."""
    deviation: float | None
    """Median absolute deviation over the median."""
    foreign_cpu_share: float | None
    """Greatest over the runs: CPU time of other programs over the time of all cores."""
    errors: int | None


class DeviceLateness(Record):
    """How late one emulated device was in its worst run, in µs; each figure is the greatest over all runs."""

    placement: str
    device: str
    p50_us: float
    p99_us: float
    max_us: float
    share: float
    """All lateness summed, over the elapsed time."""
    bound_share: float

    @property
    def within(self) -> bool:
        """Whether every run kept the bound."""
        return self.share <= self.bound_share


class LeftOut(Record):
    """A run that counts for nothing, and why."""

    placement: str
    repeat: int
    order: int
    status: str
    problems: list[str]


class Validity(Record):
    """Grounds to trust or to doubt one comparison."""

    runs: int
    valid: int
    noise: list[Noise]
    lateness: list[DeviceLateness]
    left_out: list[LeftOut]
    points: dict[str, list[Point]]
    """Placement -> its runs, in the order they ran."""


def validity_of(by_placement: Mapping[str, Sequence[RunResult]]) -> Validity:
    """Collect the grounds from the runs of one comparison."""
    runs = [run for group in by_placement.values() for run in group]
    left_out = sorted((run for run in runs if run.status != "ok"), key=lambda run: run.order)
    return Validity(
        runs=len(runs),
        valid=sum(run.status == "ok" for run in runs),
        noise=[_noise(name, group) for name, group in by_placement.items()],
        lateness=[late for name, group in by_placement.items() for late in _lateness(name, group)],
        left_out=[
            LeftOut(
                placement=r.placement, repeat=r.repeat, order=r.order, status=r.status, problems=r.problems
            )
            for r in left_out
        ],
        points={name: [_point(run) for run in group] for name, group in by_placement.items()},
    )


def _point(run: RunResult) -> Point:
    """One run as a dot on a chart; a failed one has no time."""
    elapsed_s = run.elapsed_s if run.status != "failed" else None
    return Point(order=run.order, repeat=run.repeat, status=run.status, elapsed_s=elapsed_s)


def _noise(placement: str, runs: Sequence[RunResult]) -> Noise:
    valid = [run for run in runs if run.status == "ok"]
    times = [run.elapsed_s for run in valid if run.elapsed_s]
    errors = [run.errors for run in runs if run.errors is not None]
    return Noise(
        placement=placement,
        runs=len(valid),
        variation=coefficient_of_variation(times) if times else None,
        deviation=median_absolute_deviation(times) / median(times) if times else None,
        foreign_cpu_share=max((s for run in valid if (s := _foreign_cpu(run)) is not None), default=None),
        errors=sum(errors) if errors else None,
    )


def _foreign_cpu(run: RunResult) -> float | None:
    if run.cpu is None or run.cpu.other_s is None or not run.elapsed_s:
        return None
    return run.cpu.other_s / (run.elapsed_s * run.machine.cores)


def _lateness(placement: str, runs: Sequence[RunResult]) -> list[DeviceLateness]:
    found: dict[str, list[DeviceLateness]] = {}
    for run in runs:
        for device in run.devices:
            if device.lateness is not None:
                late = DeviceLateness(placement=placement, device=device.name, **device.lateness.model_dump())
                found.setdefault(device.name, []).append(late)
    return [_worst(several) for several in found.values()]


def _worst(several: Sequence[DeviceLateness]) -> DeviceLateness:
    figures = ("p50_us", "p99_us", "max_us", "share")
    return several[0].model_copy(
        update={name: max(getattr(one, name) for one in several) for name in figures}
    )
