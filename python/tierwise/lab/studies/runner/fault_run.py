"""Runs of faults under a load of commits: power cuts, or the death of the device of one role."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from random import Random
from typing import Any, TypeVar

from tierwise.host.disk.config import WRITE_BACK_S
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies.runner import record
from tierwise.lab.studies.runner.faults import CutBed, DeathBed
from tierwise.lab.studies.runner.storage import Storage, open_storage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.placement import Role
from tierwise.results import DeviceDeath, DeviceDeaths, EngineInfo, PowerCut, PowerCuts, RunResult

BedT = TypeVar("BedT")
FaultT = TypeVar("FaultT", PowerCut, DeviceDeath)


def share_of(faults: int, repeats: int, repeat: int) -> int:
    """Faults of one repeat; the first repeats take what does not divide."""
    return faults // repeats + (repeat < faults % repeats)


def open_database(study: Study, plan: RunPlan, undo: ExitStack) -> tuple[Engine, Storage, float]:
    """New devices with an empty database on them; gives also the time of its first start in seconds."""
    # The engine is closed last: its files are gone with the devices, also from a damaged file system.
    engine = undo.enter_context(engines.create(plan.engine, study.settings.get(plan.engine, {})))
    storage = open_storage(study, plan, engine.roles, undo)
    undo.callback(engine.crash_stop)
    storage.set_timing(False)
    engine.init(storage.places)
    started_s = time.monotonic()
    engine.start()
    return engine, storage, time.monotonic() - started_s


def prepared_record(
    study: Study, plan: RunPlan, study_seed: int, engine: Engine, storage: Storage
) -> RunResult:
    """The record of the run before its first fault."""
    info = EngineInfo(name=engine.name, version=engine.version(), settings=engine.settings())
    return record.of_run(study, plan, study_seed, info, storage)


def repeat_faults(
    plan: RunPlan,
    wanted: int,
    progress: ProgressCallback,
    open_bed: Callable[[], AbstractContextManager[tuple[BedT, RunResult]]],
    cause: Callable[[BedT, int], FaultT],
) -> tuple[RunResult, list[FaultT]]:
    """Cause as many faults as wanted.

    Args:
        plan: the run; it seeds the faults.
        wanted: number of faults.
        progress: told of each.
        open_bed: makes devices and a database; gives also the record before the first fault.
        cause: causes one fault, of a seed.

    Returns:
        The record, failed if a load failed before its fault, and the faults.
    """
    dice, faults = Random(f"{plan.seed} {plan.run_id}"), list[FaultT]()
    result: RunResult | None = None
    while len(faults) < wanted or result is None:
        progress("making devices and a database")
        with open_bed() as (bed, prepared):
            result = result or prepared
            try:
                while len(faults) < wanted:
                    progress(f"fault {len(faults) + 1} of {wanted}")
                    faults.append(cause(bed, dice.getrandbits(32)))
                    if faults[-1].needs_new_database:
                        break
            except TierwiseError as error:
                return record.failed(result, [str(error)]), faults
    return result, faults


def with_load(result: RunResult, faults: Sequence[PowerCut | DeviceDeath], **fields: Any) -> RunResult:
    """The record with the faults in ``fields``, and with the load of all of them together."""
    seconds, commits = sum(fault.load_s for fault in faults), sum(fault.commits for fault in faults)
    measured = {
        "elapsed_s": seconds or None,
        "transactions": commits,
        "rate_per_s": commits / seconds if seconds else None,
        "errors": 0,
    }
    return result.model_copy(update={**fields, **measured})


DYING = "dying"
"""The swept setting that names the role whose device dies."""


def execute_deaths(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Let the role's device die as often as the repeat's share of deaths; see ``run.execute``."""
    role = Role(plan.setting[DYING])
    result, deaths = repeat_faults(
        plan,
        share_of(study.deaths or 0, study.repeats, plan.repeat),
        progress,
        lambda: _open_deaths(study, plan, study_seed),
        lambda bed, seed: bed.die(role, seed, study.seconds or 0),
    )
    assert result.device_deaths is not None, "described when its database was made"
    return with_load(result, deaths, device_deaths=result.device_deaths.model_copy(update={"deaths": deaths}))


@contextmanager
def _open_deaths(study: Study, plan: RunPlan, study_seed: int) -> Iterator[tuple[DeathBed, RunResult]]:
    """New devices with a new database on them, and the conditions of the run."""
    with ExitStack() as undo:
        engine, storage, clean_start_s = open_database(study, plan, undo)
        bed = DeathBed(engine, storage.emulated.values(), study.clients, storage=storage)
        bed.prepare()
        described = DeviceDeaths(role=Role(plan.setting[DYING]), clean_start_s=clean_start_s, deaths=[])
        prepared = prepared_record(study, plan, study_seed, engine, storage)
        yield bed, prepared.model_copy(update={"device_deaths": described})


VARIANT = "variant"
"""The swept setting that names a run's durability setting."""


def execute_cuts(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Cut the power as often as the repeat's share of the study's cuts; see ``run.execute``."""
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
        setting = next(setting for setting in engine.durability() if setting.name == plan.setting[VARIANT])
        described = PowerCuts(
            durability=setting.name,
            durable=setting.durable,
            promise=setting.promise,
            clean_start_s=clean_start_s,
            cuts=[],
        )
        prepared = prepared_record(study, plan, study_seed, engine, storage)
        yield bed, prepared.model_copy(update={"power_cuts": described})
