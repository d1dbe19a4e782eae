"""The runs of a validation round: resumable, repeated where the machine was disturbed."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Protocol

from tierwise import probe
from tierwise.host import machine, programs
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.output_files import own_folder, write_file
from tierwise.model.progress import ProgressCallback
from tierwise.results.measurements import Record
from tierwise.validation import control, own_run, session
from tierwise.validation.case import OWN_FAMILY, Case
from tierwise.validation.control import Reading
from tierwise.validation.order import Session, estimate_s, plan
from tierwise.validation.rows import Round, Row, append_row, finished_slots, read_rows
from tierwise.validation.session import Place
from tierwise.validation.spec import OWN, ValidationSpec

PLAN_FILE = "plan.json"
SPEC_FILE = "spec.json"
_IDLE_POLL = Path("/sys/module/haltpoll/parameters/guest_halt_poll_ns")
_DIRTY = "-dirty"
_PROBE_S = 60.0
"""The default time of ``tierwise device probe``."""
OWN_PROFILE = "own.toml"
"""Profile of the machine's own storage, as measured by ``probe``."""


class Observer(Protocol):
    """Receives the events of a round."""

    def round_started(self, folder: Path, sessions: int, estimated_s: float) -> None:
        """A round begins; arguments give the remaining sessions and their estimated time."""

    def session_started(self, session: Session) -> None:
        """A session begins."""

    def phase_started(self, what: str) -> None:
        """A phase of the current session begins."""

    def run_finished(self, row: Row) -> None:
        """A run ended and its row is on disk."""

    def left_out(self, what: str, reason: str) -> None:
        """A session cannot be prepared; the others continue."""


class Started(Record):
    """Parameters that determine the runs of a started round; kept in ``plan.json``."""

    fingerprint: str
    round: Round
    model: str
    rotation: int
    seed: int
    cases: list[str]
    left_out: dict[str, str] = {}
    """Cases and placements that could not be run, each with the reason."""
    idle_poll_ns: int | None = None
    """Time that an idle core of a guest polls before it halts; ``None`` if the kernel does not report it."""


def run(
    spec: ValidationSpec,
    cases: Sequence[Case],
    folder: Path,
    observer: Observer,
    *,
    round: Round = "building",
    rotation: int = 0,
    seed: int | None = None,
    fresh: bool = False,
    left_out: Mapping[str, str] | None = None,
    drop_caches: bool = False,
) -> None:
    """Run the remaining runs of a round, and repeat the failed ones.

    Args:
        spec: the validation that defines the cases.
        cases: cases to run.
        folder: folder of rows, recordings and the machine's own storage; an interrupted round is resumed.
        observer: receives progress. A session that cannot be prepared is left out; the others continue.
        round: whether the model is still being built, or is frozen.
        rotation: number of the round for which ``cases`` were chosen.
        seed: seed of the order; random if not given.
        fresh: delete the folder of an earlier round first.
        left_out: cases and placements left out, with reasons, to be kept with the round.
        drop_caches: make cold starts by dropping the caches of the whole machine; only if the user says so.

    Raises:
        TierwiseError: if another round has begun in ``folder``, or it cannot be written.
    """
    if fresh and (folder / PLAN_FILE).exists():
        shutil.rmtree(folder)
    wanted = Started(
        fingerprint=spec.fingerprint,
        round=round,
        model=model_name(),
        rotation=rotation,
        seed=secrets.randbits(31) if seed is None else seed,
        cases=[case.name for case in cases],
        left_out=dict(left_out or {}),
        idle_poll_ns=int(_IDLE_POLL.read_text("ascii")) if _IDLE_POLL.exists() else None,
    )
    started = _started(Place(folder), spec, wanted)
    _Runner(spec, Place(folder), started, observer, drop_caches=drop_caches).run(cases)


def model_name() -> str:
    """Commit of the running model, marked if files differ from it; else tierwise's version."""
    # Git takes settings from a repository only of its own user, or one that the command line trusts.
    repository = ["-c", "safe.directory=*", "-C", str(Path(__file__).parent)]
    describe = ["describe", "--always", f"--dirty={_DIRTY}", "--abbrev=12"]
    try:
        told = programs.run("git", ["git", *repository, *describe])
    except TierwiseError:
        return metadata.version("tierwise")
    return told.output.strip() if told.status == 0 else metadata.version("tierwise")


class _Runner:
    """A round in progress."""

    def __init__(
        self,
        spec: ValidationSpec,
        place: Place,
        started: Started,
        observer: Observer,
        *,
        drop_caches: bool,
    ) -> None:
        self._spec, self._place, self._started, self._observer = spec, place, started, observer
        self._drop_caches = drop_caches
        self._rows = read_rows(place.folder)
        self._readings: list[Reading] = []
        """Readings of the control workload."""

    def run(self, cases: Sequence[Case]) -> None:
        """Run every remaining session, with repeats as needed."""
        control_of, attempts = self._spec.control, self._spec.control.attempts
        finished = finished_slots(self._rows, attempts)
        planned = plan(cases, self._spec.repeats, self._started.seed)
        left = [one for one in (each.without(finished) for each in planned) if one.kinds]
        self._observer.round_started(self._place.folder, len(left), estimate_s(left, self._spec, self._rows))
        if left:
            _own_profile(self._spec, cases, self._place, self._observer.phase_started)
            self._readings = [control.read(control_of, self._place.own) for _ in range(control_of.fewest)]
        for one in left:
            for _ in range(attempts):
                again = one.without(finished_slots(self._rows, attempts))
                if not again.kinds or not self._run_session(again):
                    break
        shutil.rmtree(self._place.templates, ignore_errors=True)

    def _run_session(self, one: Session) -> bool:
        """Run a session and keep its rows; return whether nothing failed."""
        self._observer.session_started(one)
        runs = (session if one.case.external else own_run).run_session
        base, sound = _base(one, self._spec, self._started), True
        say = self._observer.phase_started
        try:
            for row in runs(one, self._spec, self._place, base, say, drop_caches=self._drop_caches):
                judged = self._judged(row)
                append_row(self._place.folder, judged)
                self._rows.append(judged)
                self._observer.run_finished(judged)
                sound = sound and judged.status != "failed"
        except TierwiseError as error:
            self._observer.left_out(f"{one.case.name}/{one.placement}", str(error))
            return False
        return sound

    def _judged(self, row: Row) -> Row:
        """The row with its attempt; marked spoilt if the machine or a disk violated a declared bound."""
        bounds = self._spec.control
        attempt = sum(one.slot == row.slot for one in self._rows)
        problems = list(row.problems) if row.status == "ok" else []
        if row.late_share is not None and row.late_share > bounds.late_share:
            problems.append(f"an emulated disk was late by {row.late_share:.1%} of the run")
        earlier = [*self._readings, *(reading for one in self._rows for reading in one.control)]
        here = [
            reading for one in self._rows if _synced_on(one) == _synced_on(row) for reading in one.control
        ]
        if why := control.slower(row.control, earlier, here, bounds):
            problems.append(why)
        if row.status != "ok" or not problems:
            return row.model_copy(update={"attempt": attempt})
        return row.model_copy(update={"attempt": attempt, "status": "spoilt", "problems": problems})


def _base(one: Session, spec: ValidationSpec, started: Started) -> Row:
    """Row fields that all runs of a session share."""
    return Row(
        case=one.case.name,
        family=one.case.family,
        engine=one.case.study.engines[0],
        clients=one.case.study.clients,
        placement=one.placement,
        storage=spec.kind_of(one.placement),
        kind="measured",
        block=one.block,
        order=one.order,
        round=started.round,
        model=started.model,
        started_at=datetime.now(UTC),
        laps=one.case.laps,
        machine=machine.describe(),
    )


def _synced_on(row: Row) -> str:
    """Storage that the control workload wrote to: the run's, or this machine's own for studies."""
    return OWN if row.storage == "real" or row.family == OWN_FAMILY else row.placement


def _own_profile(
    spec: ValidationSpec, cases: Sequence[Case], place: Place, progress: ProgressCallback
) -> None:
    """Measure the machine's own storage once, as its user would, if a placement of the round is on it."""
    file = place.folder / OWN_PROFILE
    used = {name for case in cases for name in case.study.placements}
    if file.exists() or not any(spec.kind_of(name) == "real" for name in used):
        return
    progress("probing the machine's own storage")
    report = probe.probe(place.own, probe.Options(seconds=_PROBE_S), progress)
    write_file(file, report.profile or "")


def _started(place: Place, spec: ValidationSpec, wanted: Started) -> Started:
    """The round started in a folder, or a new one; if the cases changed, common runs are kept."""
    before = read_plan(place.folder)
    if wanted.round == "prospective" and wanted.model.endswith(_DIRTY):
        raise TierwiseError("--round prospective: files differ from their commit", "commit the model first")
    if before and before.fingerprint != wanted.fingerprint:
        raise TierwiseError(
            f"{place.folder} holds a validation of other cases",
            "give --fresh, or another --output",
        )
    if before and (before.round, before.rotation) != (wanted.round, wanted.rotation):
        raise TierwiseError(
            f"{place.folder} holds the {before.round} round of rotation {before.rotation}",
            "give the same --round and --rotation, or another folder with --output",
        )
    if before and before.model != wanted.model and wanted.round == "prospective":
        raise TierwiseError(
            f"the round in {place.folder} is of model {before.model}, this is {wanted.model}",
            "check out that commit, or begin another round with --output",
        )
    started = wanted.model_copy(update={"seed": before.seed}) if before else wanted
    try:
        own_folder(place.own, 0o755)
        write_file(place.folder / SPEC_FILE, spec.model_dump_json(indent=1) + "\n")
        text = json.dumps(started.model_dump(), indent=2)
        write_file(place.folder / PLAN_FILE, text + "\n")
    except OSError as error:
        raise TierwiseError(
            f"{place.folder}: {error.strerror}", "give --output a folder that you may write"
        ) from error
    return started


def read_plan(folder: Path) -> Started | None:
    """The round started in a folder, if any."""
    file = folder / PLAN_FILE
    if not os.path.lexists(file):
        return None
    return Started.model_validate_json(read_text(file, "name the folder of a validation", in_folder=True))
