"""A run of faults under a load of commits; after a fault that harms the database, all is made anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from random import Random
from typing import Any, TypeVar

from tierwise import engines
from tierwise.engines.base import Engine
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.results import DeviceDeath, EngineInfo, PowerCut, RunResult
from tierwise.studies.plan import RunPlan
from tierwise.studies.runner import record
from tierwise.studies.runner.storage import Storage, open_storage
from tierwise.studies.spec import Study

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


def with_load(result: RunResult, faults: Sequence[PowerCut | DeviceDeath], **told: Any) -> RunResult:
    """The record with the faults as ``told``, and with the load of all of them together."""
    seconds, commits = sum(fault.load_s for fault in faults), sum(fault.commits for fault in faults)
    measured = {
        "elapsed_s": seconds or None,
        "transactions": commits,
        "rate_per_s": commits / seconds if seconds else None,
        "errors": 0,
    }
    return result.model_copy(update={**told, **measured})
