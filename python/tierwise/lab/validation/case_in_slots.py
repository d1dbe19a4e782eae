"""Measures a case in slots.

All placements of a case are up at once, each with its own server and devices. The client runs against one at
a time, for some seconds, in random order within blocks. The host's drift thus falls on all placements alike,
and rates are compared within a block. Recordings are slots too: the slots just before and after one, against
the same placement and as long, tell the rate without recording.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from tierwise.host import doctor
from tierwise.lab.validation.measured_rates import are_ratios_settled, complete_blocks
from tierwise.lab.validation.placed_database import (
    PlacedDatabase,
    database_template_of,
    place_database,
    template_size_bytes,
)
from tierwise.lab.validation.slot_rows import Kind, SlotRow, recording_folder_of
from tierwise.lab.validation.validation_case import ValidationCase
from tierwise.lab.validation.validation_spec import ValidationSpec
from tierwise.model.executor import ProgressCallback
from tierwise.model.units import significant_text

_IDLE_CPU_SHARE = 0.04
"""Share of the processors below which the machine counts as idle: two ticks of the clock in the window."""
_WINDOW_S = 0.25
_MOST_WAIT_S = 5.0
"""A slot waits no longer for idle servers; what they use then is kept with the row."""


def is_case_done(case: ValidationCase, spec: ValidationSpec, rows: Sequence[SlotRow]) -> bool:
    """Whether a case needs no further block."""
    blocks = complete_blocks(rows, case.placements)
    if len(blocks) >= case.most_blocks:
        return True
    enough = len(blocks) >= min(spec.fewest_blocks, case.most_blocks)
    recorded = all(_recordings(rows, placement) >= spec.recordings for placement in case.recorded)
    return enough and recorded and are_ratios_settled(blocks, case.recorded, case.placements, spec.half_width)


@dataclass(frozen=True)
class CaseInSlots:
    """Measures and records one case."""

    case: ValidationCase
    spec: ValidationSpec
    folder: Path
    base: SlotRow
    """With the fields that all slots share."""
    seed: int
    """Of the order, and of the models of devices."""
    drop_caches: bool
    """Whether a cold start drops the caches of the whole machine."""
    progress: ProgressCallback

    def measure(self, rows: Sequence[SlotRow]) -> Iterator[SlotRow]:
        """Measure blocks until the case is done, or a slot fails; blocks of earlier ``rows`` count."""
        known = list(rows)
        template = database_template_of(self.case, self.folder / "templates", self.progress)
        while not is_case_done(self.case, self.spec, known):
            for row in self._bring_up(template, known):
                known.append(row)
                yield row
                if row.status == "failed":
                    return

    def _bring_up(self, template: Path, known: Sequence[SlotRow]) -> Iterator[SlotRow]:
        """Bring all placements up and measure some blocks; ``known`` grows meanwhile."""
        case = self.case
        began = {
            "bring_up": 1 + max((row.bring_up for row in known), default=-1),
            "problems": _of_memory(template, len(case.placements)),
        }
        block = 1 + max((row.block for row in known), default=-1)
        with ExitStack() as undo:
            up = {name: undo.enter_context(self._up(name, template)) for name in case.placements}
            for server in () if case.laps else up.values():
                self.progress(f"warming {server.placement} up")
                server.warm_up()
            for number in range(block, block + self.spec.blocks_up):
                if is_case_done(case, self.spec, known):
                    return
                base = self.base.changed(**began, block=number)
                for index, (name, kind) in enumerate(self._order(number, known)):
                    yield self._slot(up[name], kind, base, self._seed_of_client(number, kind, index))

    def _up(self, placement: str, template: Path) -> AbstractContextManager[PlacedDatabase]:
        self.progress(f"bringing {placement} up")
        own = self.folder / "own"
        return place_database(self.case, placement, template, own, self.seed, drop_caches=self.drop_caches)

    def _order(self, block: int, known: Sequence[SlotRow]) -> list[tuple[str, Kind]]:
        """The slots of a block: each placement once, then the recordings that are still needed."""
        random, case = Random(f"{self.seed} {self.case.name} {block}"), self.case
        order: list[tuple[str, Kind]] = [
            (name, "slot") for name in random.sample(case.placements, len(case.placements))
        ]
        for name in random.sample(case.recorded, len(case.recorded)):
            if block > 0 and _recordings(known, name) < self.spec.recordings:
                order += [(name, "beside"), (name, "recorded"), (name, "beside")]
        return order

    def _seed_of_client(self, block: int, kind: Kind, index: int) -> int:
        """Of a slot: placements of a block are compared with the same work, and no other slot repeats it.

        What a slot repeats of an earlier one is in the cache, deleted already, or written as it is.
        """
        work = "slots" if kind == "slot" else f"{kind} {index}"
        return Random(f"{self.seed} {self.case.name} {block} {work}").randrange(1, 1 << 31)

    def _slot(self, placed: PlacedDatabase, kind: Kind, base: SlotRow, seed: int) -> SlotRow:
        self.progress(f"{kind} on {placed.placement}")
        began_s = time.monotonic()
        where = {"placement": placed.placement, "storage": self.spec.kind_of(placed.placement)}
        row = base.changed(**where, kind=kind)
        out = recording_folder_of(self.folder, row) if kind == "recorded" else None
        placed.prepare()
        idle = _idle_cpu_share()
        seconds = self.case.slot_s if kind == "slot" else self.case.recorded_s
        completed = placed.run(seconds, seed, out)
        if not self.case.laps:
            placed.settle()
        return SlotRow.model_validate(
            {
                **row.model_dump(),
                **completed,
                "server": f"{placed.database.engine} {placed.database.version()}".strip(),
                "problems": [*completed.get("problems", []), *base.problems],
                "cold_start": placed.cold,
                "idle_cpu_share": idle,
                "took_s": time.monotonic() - began_s,
            }
        )


def _recordings(rows: Sequence[SlotRow], placement: str) -> int:
    return sum((row.kind, row.placement, row.status) == ("recorded", placement, "ok") for row in rows)


def _idle_cpu_share() -> float:
    """Wait until all servers are idle, and give the share of the processors in use then."""
    until_s = time.monotonic() + _MOST_WAIT_S
    cores = os.cpu_count() or 1
    while True:
        before_s = doctor.busy_cpu_s()
        time.sleep(_WINDOW_S)
        share = (doctor.busy_cpu_s() - before_s) / _WINDOW_S / cores
        if share <= _IDLE_CPU_SHARE or time.monotonic() >= until_s:
            return share


def _of_memory(template: Path, placements: int) -> list[str]:
    """A warning if memory does not hold the files of all placements."""
    needed, free = placements * template_size_bytes(template), psutil.virtual_memory().available
    if needed <= free:
        return []
    return [
        f"the files of all placements take {_gib(needed)}, and {_gib(free)} of memory are free: "
        "caches are colder than with one placement"
    ]


def _gib(value_bytes: float) -> str:
    return f"{significant_text(value_bytes / (1 << 30))} GiB"
