"""A run of power cuts: one placement, one durability setting, and the cuts of one repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tierwise.host.disk.config import WRITE_BACK_S
from tierwise.model.executor import ProgressCallback
from tierwise.results import PowerCuts, RunResult
from tierwise.studies.plan import RunPlan
from tierwise.studies.runner.fault_run import (
    open_database,
    prepared_record,
    repeat_faults,
    share_of,
    with_load,
)
from tierwise.studies.runner.power_cuts import CutBed
from tierwise.studies.spec import Study

VARIANT = "variant"
"""The swept setting that names a run's durability setting."""


def execute(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Cut the power as often as the repeat's share of the study's cuts; see :func:`run.execute`."""
    result, cuts = repeat_faults(
        plan,
        share_of(study.cuts or 0, study.repeats, plan.repeat),
        progress,
        lambda: open_bed(study, plan, study_seed),
        lambda bed, seed: bed.cut(seed, study.seconds or 0),
    )
    assert result.power_cuts is not None, "described when its database was made"
    return with_load(result, cuts, power_cuts=result.power_cuts.model_copy(update={"cuts": cuts}))


@contextmanager
def open_bed(study: Study, plan: RunPlan, study_seed: int) -> Iterator[tuple[CutBed, RunResult]]:
    """New devices with a new database on them, and the conditions of the run."""
    with ExitStack() as undo:
        engine, storage, clean_start_s = open_database(study, plan, undo)
        settle_s = WRITE_BACK_S if storage.lying else 0
        bed = CutBed(engine, list(storage.emulated.values()), study.clients, settle_s)
        bed.prepare()
        setting = next(one for one in engine.durability() if one.name == plan.setting[VARIANT])
        described = PowerCuts(
            durability=setting.name,
            durable=setting.durable,
            promise=setting.promise,
            clean_start_s=clean_start_s,
            cuts=[],
        )
        prepared = prepared_record(study, plan, study_seed, engine, storage)
        yield bed, prepared.model_copy(update={"power_cuts": described})
