"""The runs of a study, in execution order."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from random import Random

from tierwise.model.placement import Placement
from tierwise.studies import sweep
from tierwise.studies.spec import Study


@dataclass(frozen=True)
class RunPlan:
    """One planned run. ``order`` is its position in the study, counted from 0."""

    run_id: str
    engine: str
    placement: Placement
    repeat: int
    order: int
    seed: int
    setting: sweep.Setting = field(default_factory=dict)
    """The point of the study's sweep."""


def plan_runs(study: Study, seed: int) -> list[RunPlan]:
    """Every run of a study on its first engine: a randomised complete block design, one block a repeat.

    Within a block each placement runs once at each point of the sweep, in random order, so that slow drift of
    the machine falls on all of them alike. Every run of a block shares one workload seed.
    """
    random = Random(seed)
    engine = study.engines[0]
    plans: list[RunPlan] = []
    for repeat in range(study.repeats):
        block = list(product(study.placements.values(), sweep.points(study.sweep)))
        random.shuffle(block)
        block_seed = random.getrandbits(32)
        for placement, setting in block:
            run_id = _run_id(engine, placement, setting, repeat)
            plans.append(RunPlan(run_id, engine, placement, repeat, len(plans), block_seed, setting))
    return plans


def _run_id(engine: str, placement: Placement, setting: sweep.Setting, repeat: int) -> str:
    point = ",".join(f"{name}={value}" for name, value in setting.items())
    return "/".join(part for part in (engine, placement.name, point, str(repeat)) if part)
