"""The runs of a validation, in the order in which they will happen."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from tierwise import lab, study
from tierwise.results.measurements import Record
from tierwise.study.plan import RunPlan
from tierwise.validate.spec import Case, Selection, ValidationSpec, chosen

Kind = Literal["recorded", "measured"]


class PlannedRun(Record):
    """One run: of a case, under a placement."""

    case: Case
    placement: str
    repeat: int
    kind: Kind
    seed: int
    order: int

    @property
    def run_id(self) -> str:
        """Unique in the validation; the folder of its recording too."""
        return f"{self.case.name}/{self.placement}/{self.kind}-{self.repeat}"

    @property
    def study(self) -> study.Study:
        """What the lab is to run."""
        seconds = self.case.spec.recorded_seconds if self.kind == "recorded" else None
        return self.case.study.model_copy(update={"seconds": seconds}) if seconds else self.case.study

    @property
    def plan(self) -> RunPlan:
        """The same in the words of the lab."""
        engine, placement = self.case.study.engines[0], self.case.study.placements[self.placement]
        return RunPlan(self.run_id, engine, placement, self.repeat, self.order, self.seed)


def cases_of(
    spec: ValidationSpec, quick: bool, names: Sequence[str], repeats: int | None = None
) -> tuple[list[Case], dict[str, str]]:
    """Cases to run, with the placements that their engines can honour; and what is left out, with the reason.

    Args:
        spec: all there are.
        quick: the small selection only.
        names: of cases, or beginnings of names; these instead of the selection's, if any are given.
        repeats: in place of the selection's own number.

    Raises:
        TierwiseError: if there is no such case.
    """
    selection = spec.quick if quick else Selection(repeats=spec.repeats)
    cases, left_out = [], dict[str, str]()
    for case in chosen(spec.expanded(), list(names) or selection.cases):
        wanted = [*spec.recorded, *(selection.placements or case.study.placements)]
        small = case.study.with_placements([one for one in case.study.placements if one in wanted])
        kept, skipped = lab.without_gaps(small.model_copy(update={"repeats": repeats or selection.repeats}))
        left_out |= {f"{case.name}/{what}": reason for what, reason in skipped.items()}
        cases.append(case.model_copy(update={"study": kept}))
    return cases, left_out


def plan(cases: Sequence[Case], recorded: Sequence[str], seed: int) -> list[PlannedRun]:
    """Every run: recordings first, then blocks in which each case runs once under each placement.

    Each block is in random order over all cases, so that slow drift of the machine falls on all alike. All
    runs of a case share one workload seed: what is predicted is the same work elsewhere, not work like it.
    """
    random = Random(seed)
    repeats = max((case.study.repeats for case in cases), default=0)
    blocks: list[tuple[Kind, int]] = [("recorded", 0), *(("measured", repeat) for repeat in range(repeats))]
    runs: list[PlannedRun] = []
    seeds = {case.name: random.getrandbits(32) for case in cases}
    for kind, repeat in blocks:
        block = [
            (case, placement)
            for case in cases
            for placement in case.study.placements
            if kind == "measured" or placement in recorded
        ]
        random.shuffle(block)
        for case, placement in block:
            runs.append(
                PlannedRun(
                    case=case,
                    placement=placement,
                    repeat=repeat,
                    kind=kind,
                    seed=seeds[case.name],
                    order=len(runs),
                )
            )
    return runs
