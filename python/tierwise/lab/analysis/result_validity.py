"""Validity of results: noise, deadline overrun of emulated disks, foreign CPU, errors, runs left out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from tierwise.lab.analysis.placement_rows import Measure, Runs
from tierwise.lab.analysis.placement_summary import median_of_known
from tierwise.model.names import group_by_key
from tierwise.model.placement import Role
from tierwise.model.statistics import coefficient_of_variation, median_absolute_deviation
from tierwise.results import DeadlineOverrun, RunResult, StrictModel


class RunPoint(StrictModel):
    """One run as a dot on a chart. Its figures are absent where the run broke off."""

    order: int
    repeat: int
    status: Literal["ok", "invalid", "failed"]
    elapsed_s: float | None
    rate_per_s: float | None


class RepeatNoise(StrictModel):
    """Spread of the measure over the valid runs of one placement; shares are of 1."""

    placement: str
    runs: int
    variation: float | None
    """Coefficient of variation."""
    deviation: float | None
    """Median absolute deviation over the median."""
    foreign_cpu_share: float | None
    """Greatest over the runs: CPU time of other programs over the time of all cores."""
    errors: int | None


class DeviceOverrun(DeadlineOverrun):
    """How late one emulated device was in its worst run; each figure is the greatest over all runs."""

    placement: str
    device: str

    @property
    def within(self) -> bool:
        """Whether every run met the bound."""
        return self.share <= self.bound_share


class RolePlacementProof(StrictModel):
    """Proof that one role's files were where the placement says, over the valid runs."""

    placement: str
    role: Role
    device: str
    reached_bytes: float | None
    """Median of the role's bytes in the device's counters."""
    written_bytes: float | None
    """Median of the role's bytes in the engine's counters."""
    share: float | None
    """Least share of the written bytes that reached the device."""
    files: int
    """Maximum number of the role's files seen in one run."""
    strays: list[str]
    """Files of the role seen elsewhere, in any run."""
    resident_share: float | None
    """Greatest share of the role's bytes in the page cache when measuring began."""


class ExcludedRun(StrictModel):
    """A run that counts for nothing, and why."""

    placement: str
    repeat: int
    order: int
    status: str
    problems: list[str]


class ResultValidity(StrictModel):
    """Grounds to trust or to doubt one comparison."""

    runs: int
    valid: int
    noise: list[RepeatNoise]
    deadline_overrun: list[DeviceOverrun]
    placed: list[RolePlacementProof]
    left_out: list[ExcludedRun]
    points: dict[str, list[RunPoint]]
    """Placement -> its runs, in execution order."""


def validity_of(by_placement: Runs, measure: Measure) -> ResultValidity:
    """Collect the validity evidence from the runs of one comparison."""
    runs = [run for group in by_placement.values() for run in group]
    left_out = sorted((run for run in runs if run.status != "ok"), key=lambda run: run.order)
    return ResultValidity(
        runs=len(runs),
        valid=sum(run.status == "ok" for run in runs),
        noise=[_noise(name, group, measure) for name, group in by_placement.items()],
        deadline_overrun=[late for name, group in by_placement.items() for late in _overruns(name, group)],
        placed=[proof for name, group in by_placement.items() for proof in _placed(name, group)],
        left_out=[
            ExcludedRun.model_validate(run.model_dump(include=set(ExcludedRun.model_fields)))
            for run in left_out
        ],
        points={name: [_point(run) for run in group] for name, group in by_placement.items()},
    )


def _placed(placement: str, runs: Sequence[RunResult]) -> list[RolePlacementProof]:
    valid = [run for run in runs if run.status == "ok"]
    known = {*(role for run in valid for role in run.proof), *(r for run in valid for r in run.residency)}
    return [_role(placement, role, valid) for role in Role if role in known]


def _role(placement: str, role: Role, runs: Sequence[RunResult]) -> RolePlacementProof:
    proofs = [run.proof[role] for run in runs if role in run.proof]
    return RolePlacementProof(
        placement=placement,
        role=role,
        device=runs[0].role_devices.get(role, proofs[0].device if proofs else ""),
        reached_bytes=median_of_known(proof.reached_bytes for proof in proofs),
        written_bytes=median_of_known(proof.written_bytes for proof in proofs),
        share=min((proof.share for proof in proofs if proof.share is not None), default=None),
        files=max((proof.files for proof in proofs), default=0),
        strays=sorted({stray for proof in proofs for stray in proof.strays}),
        resident_share=max((run.residency[role] for run in runs if role in run.residency), default=None),
    )


def _point(run: RunResult) -> RunPoint:
    failed = {"elapsed_s": None, "rate_per_s": None} if run.status == "failed" else {}
    return RunPoint(**run.model_dump(include=set(RunPoint.model_fields)) | failed)


def _noise(placement: str, runs: Sequence[RunResult], measure: Measure) -> RepeatNoise:
    valid = [run for run in runs if run.status == "ok"]
    levels = [level for run in valid if (level := run.rate_per_s if measure == "rate" else run.elapsed_s)]
    errors = [run.errors for run in runs if run.errors is not None]
    foreign = [
        run.cpu.other_s / (run.elapsed_s * run.machine.cores)
        for run in valid
        if run.cpu and run.cpu.other_s is not None and run.elapsed_s
    ]
    return RepeatNoise(
        placement=placement,
        runs=len(valid),
        variation=coefficient_of_variation(levels) if levels else None,
        deviation=median_absolute_deviation(levels) / median(levels) if levels else None,
        foreign_cpu_share=max(foreign, default=None),
        errors=sum(errors) if errors else None,
    )


def _overruns(placement: str, runs: Sequence[RunResult]) -> list[DeviceOverrun]:
    """Of each emulated device, the greatest of every figure."""
    overruns = group_by_key(
        (device.name, device.deadline_overrun.model_dump())
        for run in runs
        for device in run.devices
        if device.deadline_overrun is not None
    )
    return [
        DeviceOverrun(
            placement=placement,
            device=name,
            **{key: max(figures[key] for figures in several) for key in several[0]},
        )
        for name, several in overruns.items()
    ]
