"""The sessions of a round, in execution order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from tierwise.studies.plan import RunPlan
from tierwise.validation.case import Case
from tierwise.validation.rows import Kind, Row
from tierwise.validation.spec import ValidationSpec

_SETUP_S = 5.0
"""Setup time of a session: devices, a copy of the data, the server's start and end."""
_OWN_SETUP_S = 12.0
"""Setup time of a session whose tables the runner loads."""
_LAP_S = 8.0
"""Assumed time of laps whose length is not known yet."""


@dataclass(frozen=True)
class Session:
    """Runs of a case under one placement on one set of devices, one after the other."""

    case: Case
    placement: str
    block: int
    kinds: tuple[Kind, ...]
    seed: int
    order: int

    @property
    def slots(self) -> list[tuple[str, str, str, int]]:
        """Slots of its runs."""
        return [(self.case.name, self.placement, kind, self.block) for kind in self.kinds]

    def plan(self, kind: Kind) -> RunPlan:
        """The runner's plan of one of its runs."""
        run_id = "/".join([self.case.name, self.placement, f"{kind}-{self.block}"])
        placement = self.case.study.placements[self.placement]
        return RunPlan(run_id, self.case.study.engines[0], placement, self.block, self.order, self.seed)

    def without(self, finished: Collection[tuple[str, str, str, int]]) -> Session:
        """The session with only its unfinished runs."""
        kinds = tuple(kind for kind, slot in zip(self.kinds, self.slots, strict=True) if slot not in finished)
        return Session(self.case, self.placement, self.block, kinds, self.seed, self.order)


def plan(cases: Sequence[Case], repeats: int, seed: int) -> list[Session]:
    """Every session: blocks in which each case runs, and is recorded, once under each of its placements.

    Each block is in random order over all cases, so that slow drift of the machine falls on all alike. All
    runs of a case share one workload seed. A mix is recorded and measured on the same devices, in random
    order; laps change their data and get devices of their own.
    """
    random = Random(seed)
    seeds = {case.name: random.getrandbits(32) for case in cases}
    sessions: list[Session] = []
    for block in range(repeats):
        parts = [
            (case, placement, kinds)
            for case in cases
            for placement in case.study.placements
            for kinds in _kinds(case, placement, random)
        ]
        random.shuffle(parts)
        for case, placement, kinds in parts:
            sessions.append(Session(case, placement, block, kinds, seeds[case.name], len(sessions)))
    return sessions


def estimate_s(sessions: Sequence[Session], spec: ValidationSpec, rows: Sequence[Row]) -> float:
    """Estimated time of sessions, from the measured time of earlier runs."""
    took: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        took.setdefault((row.case, row.placement, row.kind), []).append(row.took_s)
    total_s = 0.0
    for one in sessions:
        for index, kind in enumerate(one.kinds):
            known = took.get((one.case.name, one.placement, kind))
            total_s += median(known) if known else _guess_s(one.case, kind, spec, first=index == 0)
    return total_s


def _kinds(case: Case, placement: str, random: Random) -> list[tuple[Kind, ...]]:
    if placement not in case.recorded:
        return [("measured",)]
    if case.laps or not case.external:
        return [("measured",), ("recorded",)]
    return [("measured", "recorded") if random.random() < 0.5 else ("recorded", "measured")]


def _guess_s(case: Case, kind: Kind, spec: ValidationSpec, *, first: bool) -> float:
    work_s = _LAP_S if case.laps else case.recorded_seconds if kind == "recorded" else case.seconds
    setup_s = (_SETUP_S if case.external else _OWN_SETUP_S) + spec.warm_up_s if first else 0.0
    control_s = (spec.control.cpu_s + spec.control.sync_s) * (2 if first else 1)
    return setup_s + control_s + work_s
