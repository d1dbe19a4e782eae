"""A run of deaths: one placement, one role whose device dies, and the deaths of one repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tierwise.model.executor import ProgressCallback
from tierwise.model.placement import Role
from tierwise.results import DeviceDeaths, RunResult
from tierwise.studies.plan import RunPlan
from tierwise.studies.runner.device_deaths import DeathBed
from tierwise.studies.runner.fault_run import (
    open_database,
    prepared_record,
    repeat_faults,
    share_of,
    with_load,
)
from tierwise.studies.spec import Study

DYING = "dying"
"""The swept setting that names the role whose device dies."""


def execute(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Let the role's device die as often as the repeat's share of deaths; see :func:`run.execute`."""
    role = Role(plan.setting[DYING])
    result, deaths = repeat_faults(
        plan,
        share_of(study.deaths or 0, study.repeats, plan.repeat),
        progress,
        lambda: _open_bed(study, plan, study_seed),
        lambda bed, seed: bed.die(role, seed, study.seconds or 0),
    )
    assert result.device_deaths is not None, "described when its database was made"
    return with_load(result, deaths, device_deaths=result.device_deaths.model_copy(update={"deaths": deaths}))


@contextmanager
def _open_bed(study: Study, plan: RunPlan, study_seed: int) -> Iterator[tuple[DeathBed, RunResult]]:
    """New devices with a new database on them, and the conditions of the run."""
    with ExitStack() as undo:
        engine, storage, clean_start_s = open_database(study, plan, undo)
        bed = DeathBed(engine, storage.emulated.values(), study.clients, storage=storage)
        bed.prepare()
        described = DeviceDeaths(role=Role(plan.setting[DYING]), clean_start_s=clean_start_s, deaths=[])
        prepared = prepared_record(study, plan, study_seed, engine, storage)
        yield bed, prepared.model_copy(update={"device_deaths": described})
