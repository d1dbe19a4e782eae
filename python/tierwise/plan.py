"""The runs of a study, in the order in which they will happen."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tierwise.placement import Placement
from tierwise.study import Study


@dataclass(frozen=True)
class RunPlan:
    """One run to come. ``order`` is its place in the study, counted from 0."""

    run_id: str
    engine: str
    placement: Placement
    repeat: int
    order: int
    seed: int


def plan_runs(study: Study, seed: int) -> list[RunPlan]:
    """Every run of a study: a randomised complete block design, one block a repeat.

    Within a block each placement of each engine runs once, in random order, so that slow drift of the
    machine falls on all of them alike. Every run of a block shares one workload seed.
    """
    random = Random(seed)
    plans: list[RunPlan] = []
    for repeat in range(study.repeats):
        block = [(engine, placement) for engine in study.engines for placement in study.placements.values()]
        random.shuffle(block)
        block_seed = random.getrandbits(32)
        for engine, placement in block:
            run_id = f"{engine}/{placement.name}/{repeat}"
            plans.append(RunPlan(run_id, engine, placement, repeat, len(plans), block_seed))
    return plans
