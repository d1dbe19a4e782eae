"""A round of a validation: its folder, its cases one after the other, and what is left of it."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Protocol

from tierwise import probe
from tierwise.host import doctor, programs
from tierwise.lab.validation import case_in_slots
from tierwise.lab.validation.slot_rows import Round, SlotRow, append_slot_row, read_slot_rows, slots_of_case
from tierwise.lab.validation.validation_case import ValidationCase
from tierwise.lab.validation.validation_spec import ValidationSpec
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.executor import ProgressCallback
from tierwise.model.input_files import read_text
from tierwise.model.output_files import make_own_folder, write_file
from tierwise.results.measurements import StrictModel

PLAN_FILE = "plan.json"
SPEC_FILE = "spec.json"
_IDLE_POLL = Path("/sys/module/haltpoll/parameters/guest_halt_poll_ns")
_DIRTY = "-dirty"
_PROBE_S = 60.0
"""The default time of ``tierwise device probe``."""
_SETUP_S = 8.0
"""Assumed time to bring a placement up and warm it."""
_SLOT_OVERHEAD_S = 1.5
_JOB_S = 15.0
"""Assumed time of a job, with its data restored, before its first slot."""
_USUAL_BLOCKS = 12
OWN_PROFILE = "own.toml"
"""Profile of the machine's own storage, as measured by ``probe``."""


class RoundObserver(Protocol):
    """Receives the events of a round."""

    def round_started(self, folder: Path, cases: int, estimated_s: float) -> None:
        """A round begins; arguments give the remaining cases and their estimated time."""

    def case_started(self, case: ValidationCase) -> None:
        """A case begins."""

    def phase_started(self, what: str) -> None:
        """A phase of the current case begins."""

    def slot_finished(self, row: SlotRow) -> None:
        """A slot ended and its row is on disk."""

    def left_out(self, what: str, reason: str) -> None:
        """A case cannot be brought up; the others continue."""


class StartedRound(StrictModel):
    """Parameters that determine the measurements of a started round; kept in ``plan.json``."""

    fingerprint: str
    round: Round
    model: str
    seed: int
    cases: list[str]
    left_out: dict[str, str] = {}
    """Cases and placements that could not be run, each with the reason."""
    idle_poll_ns: int | None = None
    """Time that an idle core of a guest polls before it halts; ``None`` if the kernel does not report it."""


def run_round(
    spec: ValidationSpec,
    cases: Sequence[ValidationCase],
    folder: Path,
    observer: RoundObserver,
    *,
    round: Round = "building",
    seed: int | None = None,
    fresh: bool = False,
    left_out: Mapping[str, str] | None = None,
    drop_caches: bool = False,
) -> None:
    """Measure the remaining blocks of a round's cases.

    An interrupted round is resumed; another one in ``folder`` is refused. A case that cannot be brought up is
    left out; the others continue.

    Args:
        folder: folder of rows, recordings and the machine's own storage.
        round: whether the model is still being built, or is frozen.
        seed: seed of the order; random if not given.
        fresh: delete the folder of an earlier round first.
        left_out: cases and placements left out, with reasons, to be kept with the round.
        drop_caches: drop the caches of the whole machine for a cold start; only if the user says so.
    """
    for case in cases:
        case.check()
    if fresh and (folder / PLAN_FILE).exists():
        shutil.rmtree(folder)
    wanted = StartedRound(
        fingerprint=spec.fingerprint,
        round=round,
        model=model_version(),
        seed=secrets.randbits(31) if seed is None else seed,
        cases=[case.name for case in cases],
        left_out=dict(left_out or {}),
        idle_poll_ns=int(_IDLE_POLL.read_text("ascii")) if _IDLE_POLL.exists() else None,
    )
    started = _started(folder, spec, wanted)
    rows = read_slot_rows(folder)
    left = [
        case for case in cases if not case_in_slots.is_case_done(case, spec, slots_of_case(rows, case.name))
    ]
    observer.round_started(folder, len(left), sum(estimated_time_s(case, spec, rows) for case in left))
    if left:
        _own_profile(spec, left, folder, observer.phase_started)
    for case in left:
        observer.case_started(case)
        measured = case_in_slots.CaseInSlots(
            case, spec, folder, _base(case, started), started.seed, drop_caches, observer.phase_started
        )
        try:
            for row in measured.measure(slots_of_case(rows, case.name)):
                append_slot_row(folder, row)
                observer.slot_finished(row)
        except TierwiseError as error:
            observer.left_out(case.name, str(error))
    shutil.rmtree(folder / "templates", ignore_errors=True)


def most_informative_cases(
    cases: Sequence[ValidationCase], spec: ValidationSpec, rows: Sequence[SlotRow], time_s: float
) -> list[ValidationCase]:
    """The cases for a limited time: one of each kind of load, then another of each, until the time is used.

    Cases that are done take no time, and stay.
    """
    turns: Counter[str] = Counter()
    ranked: list[tuple[int, ValidationCase]] = []
    for case in cases:
        ranked.append((turns[case.spec.load], case))
        turns[case.spec.load] += 1
    kept: list[ValidationCase] = []
    for _, case in sorted(ranked, key=lambda pair: pair[0]):
        needed_s = estimated_time_s(case, spec, rows)
        if needed_s <= time_s:
            kept.append(case)
            time_s -= needed_s
    return kept


def estimated_time_s(case: ValidationCase, spec: ValidationSpec, rows: Sequence[SlotRow]) -> float:
    """Estimated time of the remaining blocks of a case, from its earlier slots if there are any."""
    own = slots_of_case(rows, case.name)
    if case_in_slots.is_case_done(case, spec, own):
        return 0.0
    took_s = [row.took_s for row in own if row.kind == "slot"]
    slot_s = median(took_s) if took_s else (_JOB_S if case.laps else case.slot_s) + _SLOT_OVERHEAD_S
    recorded_s = (slot_s if case.laps else case.recorded_s + _SLOT_OVERHEAD_S) + 2 * slot_s
    blocks = max(1, min(case.most_blocks, _USUAL_BLOCKS) - len({row.block for row in own}))
    every_s = blocks * slot_s * len(case.placements)
    setup_s = math.ceil(blocks / spec.blocks_up) * _SETUP_S * len(case.placements)
    return setup_s + every_s + spec.recordings * len(case.recorded) * recorded_s


def model_version() -> str:
    """Commit of the running model, marked if files differ from it; else tierwise's version."""
    # Git takes settings from a repository only of its own user, or one that the command line trusts.
    repository = ["-c", "safe.directory=*", "-C", str(Path(__file__).parent)]
    describe = ["describe", "--always", f"--dirty={_DIRTY}", "--abbrev=12"]
    try:
        completed = programs.run("git", ["git", *repository, *describe])
    except TierwiseError:
        return metadata.version("tierwise")
    return completed.output.strip() if completed.status == 0 else metadata.version("tierwise")


def _base(case: ValidationCase, started: StartedRound) -> SlotRow:
    """Row fields that all slots of a case share."""
    return SlotRow(
        case=case.name,
        family=case.family,
        engine=case.engine,
        clients=case.study.clients,
        placement="",
        storage="real",
        kind="slot",
        block=0,
        round=started.round,
        model=started.model,
        started_at=datetime.now(UTC),
        laps=case.laps,
        machine=doctor.describe_machine(),
    )


def _own_profile(
    spec: ValidationSpec, cases: Sequence[ValidationCase], folder: Path, progress: ProgressCallback
) -> None:
    """Measure the machine's own storage once, as its user would, if a placement of the round is on it."""
    file = folder / OWN_PROFILE
    used = {name for case in cases for name in case.placements}
    if file.exists() or not any(spec.kind_of(name) == "real" for name in used):
        return
    progress("probing the machine's own storage")
    report = probe.probe_device(folder / "own", probe.ProbeOptions(seconds=_PROBE_S), progress)
    write_file(file, report.profile or "")


def _started(folder: Path, spec: ValidationSpec, wanted: StartedRound) -> StartedRound:
    """The round started in a folder, or a new one; if the cases changed, common runs are kept."""
    before = read_round_plan(folder)
    if wanted.round == "prospective" and wanted.model.endswith(_DIRTY):
        raise TierwiseError("--round prospective: files differ from their commit", "commit the model first")
    if before and before.fingerprint != wanted.fingerprint:
        raise TierwiseError(
            f"{folder} holds a validation of other cases", "give --fresh, or another --output"
        )
    if before and before.round != wanted.round:
        raise TierwiseError(
            f"{folder} holds a {before.round} round",
            f"give --round {before.round}, or another folder with --output",
        )
    if before and before.model != wanted.model and wanted.round == "prospective":
        raise TierwiseError(
            f"the round in {folder} is of model {before.model}, this is {wanted.model}",
            "check out that commit, or begin another round with --output",
        )
    started = wanted
    if before:
        cases = list(dict.fromkeys([*before.cases, *wanted.cases]))
        left_out = before.left_out | wanted.left_out
        started = wanted.changed(seed=before.seed, cases=cases, left_out=left_out)
    with os_errors(folder, "give --output a folder that you may write"):
        make_own_folder(folder / "own", 0o755)
        write_file(folder / SPEC_FILE, spec.model_dump_json(indent=1) + "\n")
        write_file(folder / PLAN_FILE, json.dumps(started.model_dump(), indent=2) + "\n")
    return started


def read_round_plan(folder: Path) -> StartedRound | None:
    """The round started in a folder, if any."""
    file = folder / PLAN_FILE
    if not os.path.lexists(file):
        return None
    return StartedRound.model_validate_json(
        read_text(file, "name the folder of a validation", in_folder=True)
    )
