"""The runs of a validation: recorded and measured on live disks, resumable."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from tierwise import lab
from tierwise.errors import TierwiseError
from tierwise.lab.run import execute
from tierwise.results import RunResult
from tierwise.results.files import append_result
from tierwise.results.measurements import Record
from tierwise.validate.order import PlannedRun, plan
from tierwise.validate.spec import Case, ValidationSpec

PLAN_FILE = "plan.json"
RECORDINGS = "recordings"


class Started(Record):
    """What decides the runs of a validation that has begun; kept in ``plan.json``."""

    fingerprint: str
    cases: list[str]
    repeats: int
    seed: int


def run(
    spec: ValidationSpec,
    cases: Sequence[Case],
    directory: Path,
    observer: lab.Observer,
    *,
    seed: int | None = None,
    fresh: bool = False,
) -> None:
    """Run what is left of a validation; what failed before is run again.

    Args:
        spec: where the cases are from.
        cases: what to run.
        directory: of the results and recordings; one that was stopped goes on.
        observer: told of progress. A run that cannot be prepared is left out, and the others go on.
        seed: decides the order of runs and the workloads' parameters; random when not given.
        fresh: throw away what is there.

    Raises:
        TierwiseError: if another validation has begun in ``directory``, or it cannot be written.
    """
    if fresh and (directory / PLAN_FILE).exists():
        shutil.rmtree(directory)
    started = _started(directory, spec, cases, seed)
    lab.set_failed_aside(directory)
    runs = plan(cases, spec.recorded, started.seed)
    finished = {result.run_id for result in lab.results_in(directory)}
    observer.study_started(directory, started.seed, len(runs), len(finished))
    for one in runs:
        if one.run_id not in finished:
            _run_one(one, directory, started.seed, observer)


def recording_of(directory: Path, run_id: str) -> Path:
    """Where the recording of a run is."""
    return directory / RECORDINGS / run_id


def _run_one(one: PlannedRun, directory: Path, seed: int, observer: lab.Observer) -> None:
    observer.run_started(one.plan)
    recordings = None
    if one.kind == "recorded":
        recordings = lab.Recordings(directory / RECORDINGS, duty=one.case.spec.duty)
    try:
        result = execute(one.study, one.plan, seed, observer.phase_started, recordings)
    except TierwiseError as error:
        observer.left_out(one.run_id, str(error))
        return
    append_result(directory / lab.RESULTS_FILE, result)
    observer.run_finished(one.plan, result)


def _started(directory: Path, spec: ValidationSpec, cases: Sequence[Case], seed: int | None) -> Started:
    """What was begun in a directory, or begins there now.

    A validation of more or fewer cases goes on with the runs that it shares with the one before.
    """
    file = directory / PLAN_FILE
    repeats = max((case.study.repeats for case in cases), default=0)
    before = Started.model_validate_json(file.read_text("utf-8")) if file.exists() else None
    if before and before.fingerprint != spec.fingerprint:
        raise TierwiseError(
            f"{directory} holds a validation of other cases", "give --fresh, or another directory with --out"
        )
    started = Started(
        fingerprint=spec.fingerprint,
        cases=[case.name for case in cases],
        repeats=repeats,
        seed=before.seed if before else secrets.randbits(31) if seed is None else seed,
    )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(started.model_dump(), indent=2) + "\n", "utf-8")
    except OSError as error:
        raise TierwiseError(
            f"{directory}: {error.strerror}", "give --out a directory that you may write"
        ) from error
    return started


def of_case(results: Sequence[RunResult], case: Case, placement: str, kind: str) -> list[RunResult]:
    """Those of a case's runs under a placement that can be believed."""
    start = f"{case.name}/{placement}/{kind}-"
    return [one for one in results if one.run_id.startswith(start) and one.status == "ok"]
