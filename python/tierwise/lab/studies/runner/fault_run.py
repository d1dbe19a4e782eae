"""Runs of faults under a load of commits: power cuts, or the death of the device of one role."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Any

from tierwise.host.disk.disk_config import WRITE_BACK_S
from tierwise.lab import engines
from tierwise.lab.studies.runner import run_record
from tierwise.lab.studies.runner.fault_beds import DeviceDeathBed, PowerCutBed
from tierwise.lab.studies.runner.run_storage import open_storage
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.placement import Role
from tierwise.results import DeviceDeath, DeviceDeaths, EngineInfo, PowerCut, PowerCuts, RunResult

DYING = "dying"
"""The swept setting that names the role whose device dies."""
VARIANT = "variant"
"""The swept setting that names a run's durability setting."""

Cause = Callable[[int, float], PowerCut | DeviceDeath]
"""Causes one fault, of a seed, after a load of so many seconds at the longest."""


def fault_share_of_repeat(faults: int, repeats: int, repeat: int) -> int:
    """Faults of one repeat; the first repeats take what does not divide."""
    return faults // repeats + (repeat < faults % repeats)


def execute_fault_run(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Cause the repeat's share of the study's faults; see ``database_run.execute_run``.

    Returns:
        The record with the faults, and with the load of all of them together; failed if a load failed before
        its fault.
    """
    wanted = fault_share_of_repeat(study.deaths or study.cuts or 0, study.repeats, plan.repeat)
    dice, faults = Random(f"{plan.seed} {plan.run_id}"), list[Any]()
    result: RunResult | None = None
    while result is None or (len(faults) < wanted and result.status != "failed"):
        progress("making devices and a database")
        with ExitStack() as undo:
            cause, prepared = open_fault_bed(study, plan, study_seed, undo)
            result = result or prepared
            try:
                while len(faults) < wanted:
                    progress(f"fault {len(faults) + 1} of {wanted}")
                    faults.append(cause(dice.getrandbits(32), study.seconds or 0))
                    if faults[-1].needs_new_database:
                        break
            except TierwiseError as error:
                result = run_record.failed_record(result, [str(error)])
    seconds, commits = sum(fault.load_s for fault in faults), sum(fault.commits for fault in faults)
    return result.changed(
        power_cuts=result.power_cuts and result.power_cuts.changed(cuts=faults),
        device_deaths=result.device_deaths and result.device_deaths.changed(deaths=faults),
        elapsed_s=seconds or None,
        transactions=commits,
        rate_per_s=commits / seconds if seconds else None,
        errors=0,
    )


def open_fault_bed(study: Study, plan: RunPlan, study_seed: int, undo: ExitStack) -> tuple[Cause, RunResult]:
    """New devices with a new database on them: what causes a fault there, and the record before the first."""
    # The engine is closed last: its files are gone with the devices, also from a damaged file system.
    engine = undo.enter_context(engines.create_engine(plan.engine, study.settings_of(plan.engine)))
    storage = open_storage(study, plan, engine.roles, undo)
    undo.callback(engine.crash_stop)
    storage.set_timing(False)
    engine.init(storage.places)
    started_s = time.monotonic()
    engine.start()
    clean_start_s = time.monotonic() - started_s
    disks = storage.emulated.values()  # a view: a dead device is replaced
    described = dict[str, PowerCuts | DeviceDeaths]()
    bed: PowerCutBed | DeviceDeathBed
    if study.deaths is not None:
        role = Role(plan.setting[DYING])
        bed = DeviceDeathBed(engine, disks, study.clients, storage=storage)
        cause: Cause = partial(bed.die, role)
        described["device_deaths"] = DeviceDeaths(role=role, clean_start_s=clean_start_s, deaths=[])
    else:
        bed = PowerCutBed(engine, disks, study.clients, WRITE_BACK_S if storage.lying else 0)
        cause = bed.cut
        setting = next(one for one in engine.durability() if one.name == plan.setting[VARIANT])
        described["power_cuts"] = PowerCuts(
            durability=setting.name,
            durable=setting.durable,
            promise=setting.promise,
            clean_start_s=clean_start_s,
            cuts=[],
        )
    bed.prepare()
    info = EngineInfo(name=engine.name, version=engine.version(), settings=engine.settings())
    return cause, run_record.unmeasured_record(study, plan, study_seed, info, storage).changed(**described)
