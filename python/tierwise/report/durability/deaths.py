"""Sums up deaths of devices: what came of each role's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tierwise.advise.deaths import DeathCounts
from tierwise.model.placement import Role
from tierwise.results import DeviceDeath, DeviceDeaths, RunResult


class DeathRow(DeathCounts):
    """All deaths of the device of one role on one placement."""

    placement: str
    device: str
    """Profile of the device."""
    shared: list[Role]
    """Other roles on it, whose files died too."""
    ran_on: int
    """Deaths after which clients still got acknowledgements until the engine was stopped."""
    most_lost: int
    """Commits lost in one death after which the engine started."""
    owed: int
    """Commits that the database had to hold then."""
    recovery_s: float | None
    """Median over the deaths after which the engine started, with all steps."""
    clean_start_s: float
    refused: str | None
    """Why starting as it is was not enough, of the first death for which it was not."""
    damage: str | None
    """Of the first death that left the database damaged, or without a start."""
    check: str
    problems: list[str]
    """Why runs ended early."""


def build_deaths(results: Sequence[RunResult]) -> list[DeathRow]:
    """One row for each engine, placement and role whose device died, by their names."""
    groups: dict[tuple[str, str, Role], list[RunResult]] = {}
    for run in results:
        if run.device_deaths is not None and run.device_deaths.deaths:
            groups.setdefault((run.engine.name, run.placement, run.device_deaths.role), []).append(run)
    return [_row(groups[key]) for key in sorted(groups)]


def _row(runs: Sequence[RunResult]) -> DeathRow:
    first, role = runs[0], _deaths_of(runs[0]).role
    deaths = [death for run in runs for death in _deaths_of(run).deaths]
    started = [death for death in deaths if death.start != "never"]
    worst = max(started, key=lambda death: death.lost, default=None)
    device = next(one for one in first.devices if role in one.roles)
    return DeathRow(
        engine=first.engine.name,
        placement=first.placement,
        role=role,
        device=device.profile or device.name,
        shared=[one for one in device.roles if one != role],
        deaths=len(deaths),
        as_is=sum(death.start == "as_is" for death in deaths),
        salvaged=sum(death.start == "salvaged" for death in deaths),
        never=len(deaths) - len(started),
        lost=sum(death.lost > 0 for death in started),
        damaged=sum(death.outcome == "damaged" for death in deaths),
        steps=list(dict.fromkeys(d.salvage for d in deaths if d.start == "salvaged" and d.salvage)),
        ran_on=sum(death.ran_on for death in deaths),
        most_lost=worst.lost if worst else 0,
        owed=worst.acknowledged if worst else 0,
        recovery_s=_middle([death.recovery_s for death in started]),
        clean_start_s=median(_deaths_of(run).clean_start_s for run in runs),
        refused=next((death.refused for death in deaths if death.refused), None),
        damage=next((death.damage for death in deaths if death.damage), None),
        check=_check_name(started),
        problems=[problem for run in runs for problem in run.problems],
    )


def _deaths_of(run: RunResult) -> DeviceDeaths:
    assert run.device_deaths is not None, "only runs with deaths are grouped"
    return run.device_deaths


def _middle(times_s: Sequence[float | None]) -> float | None:
    known = [time_s for time_s in times_s if time_s is not None]
    return median(known) if known else None


def _check_name(deaths: Sequence[DeviceDeath]) -> str:
    return next((death.check.name for death in deaths if death.check is not None), "")
