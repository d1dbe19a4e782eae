"""Conditions of a study: machine, versions, seeds, order, settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tierwise.report import numbers
from tierwise.results import Record, RunResult, StudyInfo


class Settings(Record):
    """Settings of one engine: those that every run shared, and those that differed."""

    engine: str
    common: dict[str, str]
    varied: dict[str, list[str]]


class Conditions(Record):
    """Conditions of a study; a fact that differed between runs lists every value it took."""

    facts: dict[str, list[str]]
    devices: dict[str, str]
    """Device name -> what it was."""
    settings: list[Settings]
    order: list[str]
    """Placements in execution order."""
    first_started_at: datetime
    last_started_at: datetime
    planned: int | None
    """Runs that the study plans for the comparisons seen so far."""
    finished: int


def conditions_of(results: Sequence[RunResult], info: StudyInfo) -> Conditions:
    """Collect the conditions of all runs, at least one, of a study."""
    runs = sorted(results, key=lambda run: run.order)
    groups = {(run.engine.name, tuple(sorted(run.setting.items()))) for run in runs}
    planned = info.repeats * len(info.placements) * len(groups) if info.repeats and info.placements else None
    return Conditions(
        facts=facts_of(runs),
        devices=devices_of(runs),
        settings=[settings_of(name, runs) for name in sorted({run.engine.name for run in runs})],
        order=[run.placement for run in runs],
        first_started_at=min(run.started_at for run in runs),
        last_started_at=max(run.started_at for run in runs),
        planned=planned,
        finished=len(runs),
    )


def facts_of(runs: Sequence[RunResult]) -> dict[str, list[str]]:
    """Constant and varying facts by name: machine, engine, workload."""

    def distinct(values: Sequence[object]) -> list[str]:
        return list(dict.fromkeys(str(value) for value in values))

    found = {
        "Engine": distinct([f"{run.engine.name} {run.engine.version}" for run in runs]),
        "Workload": distinct([run.workload.name.replace("_", " ") for run in runs]),
        "Scale": distinct([f"{run.workload.scale:g}" for run in runs]),
        "Constants of the workload": distinct(
            [f"{name} = {value:g}" for run in runs for name, value in run.workload.constants.items()]
        ),
        "Memory limit of the engine": distinct(
            [numbers.size(run.workload.memory_bytes) for run in runs if run.workload.memory_bytes is not None]
        ),
        "Parallelism of a statement": distinct(
            [run.workload.parallelism for run in runs if run.workload.parallelism is not None]
        ),
        "Clients": distinct([run.workload.clients for run in runs]),
        "Transactions a run": distinct(
            [numbers.count(run.transactions) for run in runs if run.transactions is not None]
        ),
        "Warm-up transactions": distinct([numbers.count(run.workload.warmup_transactions) for run in runs]),
        "Caches before the warm-up": distinct([run.workload.caches for run in runs]),
        "Seed": distinct([run.study_seed for run in runs]),
        "Machine": distinct([run.machine.host for run in runs]),
        "Processor": distinct([f"{run.machine.cpu_model}, {run.machine.cores} cores" for run in runs]),
        "Memory": distinct([numbers.size(run.machine.memory_bytes) for run in runs]),
        "Operating system": distinct([run.machine.operating_system for run in runs]),
        "Kernel": distinct([run.machine.kernel for run in runs]),
        "tierwise": distinct([run.machine.tierwise_version for run in runs]),
    }
    return {name: values for name, values in found.items() if values}


def devices_of(runs: Sequence[RunResult]) -> dict[str, str]:
    """Device name -> what it was."""
    return {d.name: _device(d.kind, d.profile, d.path) for run in runs for d in run.devices}


def _device(kind: str, profile: str | None, path: str | None) -> str:
    return f"emulated: {profile} ({kind})" if profile else f"real: {path}" if path else kind


def settings_of(engine: str, runs: Sequence[RunResult]) -> Settings:
    """Settings of one engine over its runs."""
    several = [run.engine.settings for run in runs if run.engine.name == engine]
    values = {
        name: list(dict.fromkeys(settings.get(name, "(not set)") for settings in several))
        for name in sorted({name for settings in several for name in settings})
    }
    return Settings(
        engine=engine,
        common={name: found[0] for name, found in values.items() if len(found) == 1},
        varied={name: found for name, found in values.items() if len(found) > 1},
    )
