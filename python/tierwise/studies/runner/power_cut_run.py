"""A run of power cuts: one placement, one durability setting, and the cuts of one repeat."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random

from tierwise import engines
from tierwise.host.disk.config import WRITE_BACK_S
from tierwise.model.errors import TierwiseError
from tierwise.model.progress import ProgressCallback
from tierwise.results import EngineInfo, PowerCut, PowerCuts, RunResult
from tierwise.studies.plan import RunPlan
from tierwise.studies.runner import record
from tierwise.studies.runner.power_cuts import CutBed
from tierwise.studies.runner.storage import open_storage
from tierwise.studies.spec import Study

VARIANT = "variant"
"""The swept setting that names a run's durability setting."""


def execute(study: Study, plan: RunPlan, study_seed: int, progress: ProgressCallback) -> RunResult:
    """Cut the power as often as the repeat's share of the study's cuts; see :func:`run.execute`.

    After a cut that damages the database, the next begins with new devices and a new database.
    """
    dice = Random(f"{plan.seed} {plan.run_id}")
    wanted, cuts = share_of(study.cuts or 0, study.repeats, plan.repeat), list[PowerCut]()
    result: RunResult | None = None
    while len(cuts) < wanted or result is None:
        progress("making devices and a database")
        with open_bed(study, plan, study_seed) as (bed, prepared):
            result = result or prepared
            try:
                while len(cuts) < wanted:
                    progress(f"cut {len(cuts) + 1} of {wanted}")
                    cuts.append(bed.cut(dice.getrandbits(32), study.seconds or 0))
                    if cuts[-1].damage is not None:
                        break
            except TierwiseError as error:
                return record.failed(_with_cuts(result, cuts), [str(error)])
    return _with_cuts(result, cuts)


def share_of(cuts: int, repeats: int, repeat: int) -> int:
    """Cuts of one repeat; the first repeats take what does not divide."""
    return cuts // repeats + (repeat < cuts % repeats)


@contextmanager
def open_bed(study: Study, plan: RunPlan, study_seed: int) -> Iterator[tuple[CutBed, RunResult]]:
    """New devices with a new database on them, and the conditions of the run."""
    with ExitStack() as undo:
        # The engine is closed last: its files are gone with the devices, also from a damaged file system.
        engine = undo.enter_context(engines.create(plan.engine, study.settings.get(plan.engine, {})))
        storage = open_storage(study, plan, engine.roles, undo)
        undo.callback(engine.crash_stop)
        storage.set_timing(False)
        engine.init(storage.places)
        started_s = time.monotonic()
        engine.start()
        clean_start_s = time.monotonic() - started_s
        bed = CutBed(engine, list(storage.emulated.values()), study.clients)
        bed.settle_s = WRITE_BACK_S if storage.lying else 0
        bed.prepare()
        info = EngineInfo(name=engine.name, version=engine.version(), settings=engine.settings())
        setting = next(one for one in engine.durability() if one.name == plan.setting[VARIANT])
        described = PowerCuts(
            durability=setting.name,
            durable=setting.durable,
            promise=setting.promise,
            clean_start_s=clean_start_s,
            cuts=[],
        )
        prepared = record.of_run(study, plan, study_seed, info, storage)
        yield bed, prepared.model_copy(update={"power_cuts": described})


def _with_cuts(prepared: RunResult, cuts: list[PowerCut]) -> RunResult:
    seconds, commits = sum(cut.load_s for cut in cuts), sum(cut.commits for cut in cuts)
    assert prepared.power_cuts is not None, "described when its database was made"
    update = {
        "power_cuts": prepared.power_cuts.model_copy(update={"cuts": cuts}),
        "elapsed_s": seconds or None,
        "transactions": commits,
        "rate_per_s": commits / seconds if seconds else None,
        "errors": 0,
    }
    return prepared.model_copy(update=update)
