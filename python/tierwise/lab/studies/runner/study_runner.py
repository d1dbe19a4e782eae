"""Runs a study: in random order, resumable, each run saved as it ends."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tierwise.device_models import profiles
from tierwise.host import doctor
from tierwise.host.cgroups import MemoryLimit
from tierwise.lab import engines
from tierwise.lab.studies import FILE_ENGINE
from tierwise.lab.studies.runner.database_run import execute_run
from tierwise.lab.studies.runner.engine_compatibility import restrict_to_supported
from tierwise.lab.studies.runner.pattern_run import pattern_engine_info
from tierwise.lab.studies.runner.run_recording import RecordingDestination
from tierwise.lab.studies.runner.run_storage import check_devices
from tierwise.lab.studies.runner.study_hosts import lacks_complete_block, run_blocks
from tierwise.lab.studies.study import (
    RunPlan,
    Study,
    plan_runs,
    require_consistent,
    study_at_point,
    sweep_points,
    swept_values,
)
from tierwise.lab.workloads import Workload
from tierwise.lab.workloads.program import Program
from tierwise.model import file_lock
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.executor import ProgressCallback
from tierwise.model.extras import require_extra
from tierwise.model.names import path_below
from tierwise.model.output_files import make_new_folder, make_own_folder
from tierwise.model.placement import DeviceSpec, Role
from tierwise.recording import ABOUT_FILE
from tierwise.results import RunResult, StudyInfo
from tierwise.results.result_files import (
    LATEST,
    append_record,
    own_latest_results,
    read_results,
    read_study_info,
    replace_results,
    shared_conditions_of,
    write_study_info,
)

if TYPE_CHECKING:
    from tierwise.lab.studies.runner.dask_hosts import DaskHosts

RESULTS_FILE = "results.jsonl"
FAILED_FILE = "failed.jsonl"
"""File of failed runs that were run again."""
STUDY_FILE = "study.json"
_LOCK_FILE = "lock"


class StudyObserver(Protocol):
    """Receives the runner's events; the command line draws a progress bar from them."""

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None:
        """A study of ``total`` runs begins or resumes, with ``finished`` runs from before."""

    def run_started(self, plan: RunPlan) -> None:
        """A run begins."""

    def phase_started(self, what: str) -> None:
        """A phase of the current run begins."""

    def left_out(self, what: str, reason: str) -> None:
        """A placement or a variant of the study is skipped because the engine does not support it."""

    def run_finished(self, plan: RunPlan, result: RunResult) -> None:
        """A run ended and its record is on disk."""


def run_study(
    study: Study,
    out: Path,
    observer: StudyObserver,
    seed: int | None = None,
    *,
    fresh: bool = False,
    resume: bool = False,
    recordings: RecordingDestination | None = None,
    hosts: DaskHosts | None = None,
    drop_caches: bool = False,
) -> Path:
    """Run the remaining runs of a study and return the directory of its results.

    An interrupted study is resumed, unless ``fresh``; a complete one starts anew. Placements that its engine
    cannot honour are skipped, reported to the observer and kept with the reason in ``study.json``.

    Args:
        out: parent directory; every start of a study gets its own directory there.
        seed: seed of the order of runs and of the workload's parameters; random if not given.
        fresh: start anew even if an unfinished study is there.
        recordings: destination of each run's recording; without it, nothing is recorded.
        hosts: where to run whole blocks; this machine if not given.
        drop_caches: make cold starts by dropping the caches of this whole machine; only if the user says so.
        resume: run the failed runs of the latest results again, on fresh devices, and the missing ones; if
            there are none, leave the results as they are.

    Raises:
        TierwiseError: if a run cannot be prepared, or its answer would lack a library. Runs that finished are
            kept.
    """
    study, skipped = restrict_to_runnable(study)
    check_study(study, here=hosts is None)
    require_extra("lab", "a study", ["numpy"])
    import_module("numpy")  # at its first use it would take processor time from a measured phase
    if recordings is not None:
        require_recordable(study, recordings)
        with os_errors(f"--record: {recordings.directory}", "name one that you may write"):
            make_own_folder(recordings.directory)
            with tempfile.TemporaryFile(dir=recordings.directory):  # before measuring
                pass
    directory = None if fresh else find_unfinished_results(study, out, seed)
    if resume:
        directory = find_latest_results(study, out, seed)
    if directory is not None:
        _require_alike(study, directory, recordings, here=hosts is None)
        if resume:
            set_failed_runs_aside(directory)
    if directory is None:
        info = _info(study, skipped, secrets.randbits(31) if seed is None else seed)
        directory = _create(info.changed(recorded=recordings is not None), out)
    run_here = partial(execute_run, recordings=recordings, drop_caches=drop_caches)
    # Two processes in one directory would run everything twice.
    busy = TierwiseError(f"{directory}: another process runs this study", "wait for it, or give --fresh")
    with file_lock.held(directory / _LOCK_FILE, busy=busy):
        _run_rest(study, skipped, directory, observer, run_here, hosts)
    return directory


def _run_rest(
    study: Study,
    skipped: dict[str, str],
    directory: Path,
    observer: StudyObserver,
    run_here: Callable[[Study, RunPlan, int, ProgressCallback], RunResult],
    hosts: DaskHosts | None,
) -> None:
    """Run the runs missing from a directory of results."""
    seed = read_study_info(directory / STUDY_FILE).seed
    plans, before = plan_runs(study, seed), finished_runs_in(directory)
    observer.study_started(directory, seed, len(plans), len(before))
    for what, reason in skipped.items():
        observer.left_out(what, reason)

    def started(plan: RunPlan, host: str = "") -> None:
        observer.run_started(plan)
        if host:
            observer.phase_started(f"on {host}")

    def ended(plan: RunPlan, result: RunResult) -> None:
        append_record(directory / RESULTS_FILE, result)
        observer.run_finished(plan, result)

    if hosts is not None:
        run_blocks(study, seed, before, hosts, started, ended)
    else:
        finished = {result.run_id for result in before}
        for plan in plans:
            if plan.run_id not in finished:
                started(plan)
                changed = study_at_point(study, plan.setting)
                ended(plan, run_here(changed, plan, seed, observer.phase_started))


def restrict_to_runnable(study: Study) -> tuple[Study, dict[str, str]]:
    """The study without what its engine cannot place, and the reason for each omission.

    Raises:
        TierwiseError: if nothing is left, or a device's profile is unknown.
    """
    study, skipped = restrict_to_supported(study)
    for spec in _devices_of(study):
        if spec.profile is not None:
            profiles.load_profile(spec.profile)
    return study, skipped


def _devices_of(study: Study) -> list[DeviceSpec]:
    """Those that a placement uses, in the order of their names."""
    used = {
        name
        for placement in study.placements.values()
        for name in (*placement.roles.values(), placement.default)
    }
    return [study.devices[name] for name in sorted(used)]


def check_study(study: Study, *, here: bool = True) -> None:
    """Check what every run needs, before anything is made: devices, settings, the workload, the memory.

    Args:
        here: whether it runs on this machine, so that its devices must be here.
    """
    require_consistent(study, f"study {study.name}")
    swept = [study_at_point(study, point) for point in sweep_points(study.sweep)]
    if here:
        files = study.engines == [FILE_ENGINE]
        roles = {Role.DATA} if files else engines.create_engine(study.engines[0]).roles
        for sizes in {json.dumps(each.sizes): each for each in swept}.values():
            check_devices(sizes, roles)
    if study.engines == [FILE_ENGINE]:
        return
    for name in study.engines:
        given = [varied.settings_of(name) for varied in (study, *swept)]
        for number, settings in enumerate(given):
            if settings not in given[:number]:
                engines.create_engine(name, settings).check_settings()
    for size_bytes in {varied.memory for varied in swept if varied.memory is not None}:
        MemoryLimit.require_size(size_bytes)
    dialect = engines.create_engine(study.engines[0]).dialect
    for name, _, program in _programs_of(study, dialect):
        _require_length(study, swept, name, laps=bool(program.stages))


def _programs_of(study: Study, dialect: str) -> Iterator[tuple[str, Workload, Program]]:
    """Each workload of the study by its given name, and as it is resolved at each point of the sweep."""
    if study.patterns or study.cuts is not None or study.deaths is not None:
        return  # it measures devices, or its clients only commit
    swept = [study_at_point(study, point) for point in sweep_points(study.sweep)]
    works = {(each.workload, each.scale, tuple(sorted(each.constants.items()))) for each in swept}
    for name, scale, constants in sorted(works):
        workload = Workload.load(name)
        yield name, workload, workload.resolve(scale, dict(constants), dialect)


def study_fingerprint(study: Study) -> str:
    """Hash of all that affects the runs: the study's fields and what the files hold that it names."""
    parts: list[object] = [study.fingerprint()]
    for spec in _devices_of(study):
        if spec.profile is not None:
            profile = profiles.load_profile(spec.profile)
            parts.append([profile.text, sorted(profile.library.items())])
        parts.append(None if spec.path is None else str(Path(spec.path).resolve()))
    for _, workload, program in _programs_of(study, "postgres"):
        parts.append([workload.spec.model_dump_json(), program.json, program.schema, program.after_load])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _require_length(study: Study, swept: Sequence[Study], workload: str, *, laps: bool) -> None:
    """Refuse a mix without an end, and what a mix or laps would leave unheard."""
    chosen = [each for each in swept if each.workload == workload]
    ends = [each.transactions or each.seconds for each in chosen]
    if not laps and not all(ends):
        raise TierwiseError(
            f"study {study.name}: workload {workload} is a mix of transactions, which has no end",
            "give transactions or seconds",
        )
    if not laps and any(each.cap_s for each in chosen):
        raise TierwiseError(
            f"study {study.name}: cap_s: workload {workload} is a mix of transactions without laps to stop",
            "leave it out, and give seconds",
        )
    unheard = ["transactions or seconds"] * any(ends) + ["sweep.clients"] * bool(study.sweep.clients)
    unheard += ["clients"] * any(each.clients > 1 for each in chosen)
    unheard += ["warmup_transactions"] * any(each.warmup_transactions for each in chosen)
    if laps and unheard:
        raise TierwiseError(
            f"study {study.name}: {unheard[0]}: workload {workload} has laps, which say how much they do",
            "leave it out; constants and scale change laps, cap_s stops them",
        )


def require_recordable(study: Study, recordings: RecordingDestination) -> None:
    """Refuse to record what records nothing, or where nothing can be written; nothing is made."""
    if study.patterns or study.cuts is not None or study.deaths is not None:
        raise TierwiseError(
            f"--record: study {study.name} runs no workload of a database", "leave out --record"
        )
    place = recordings.directory.absolute()
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise TierwiseError(
            f"--record: {there} is not a directory that you may write", "name one that you may write"
        )


def _require_alike(
    study: Study, directory: Path, recordings: RecordingDestination | None, *, here: bool = True
) -> None:
    """Refuse to add runs to others that were made on another machine, by other programs or while recorded.

    Recording takes time, and each run was to be recorded.
    """
    before, info = finished_runs_in(directory), read_study_info(directory / STUDY_FILE)
    kept = [result for result in before if result.status != "failed"]
    adds = len(kept) < len(before) or lacks_complete_block(study, info.seed, before)
    if adds and here:
        _require_same_conditions(study, directory, kept)
    if recordings is None:
        if info.recorded and adds:
            raise TierwiseError(
                f"{directory}: the runs of this study are recorded, which takes time of each",
                "resume with the same --record, or run all again with --fresh",
            )
        return
    missing = [run for run in kept if not (recordings.place_of(run.run_id) / ABOUT_FILE).is_file()]
    if missing:
        raise TierwiseError(
            f"--record: {len(missing)} of {len(kept)} runs in {directory} "
            f"are not recorded in {recordings.directory}",
            "resume without --record, or run all again with --fresh",
        )


def _require_same_conditions(study: Study, directory: Path, runs: Sequence[RunResult]) -> None:
    """Refuse to compare placements that ran before an upgrade, or elsewhere, with those that run now."""
    name = study.engines[0]
    version = pattern_engine_info().version if name == FILE_ENGINE else engines.create_engine(name).version()
    now = shared_conditions_of(name, version, doctor.describe_machine())
    for run in runs:
        for what, was in shared_conditions_of(name, run.engine.version, run.machine).items():
            if was != now[what]:
                raise TierwiseError(
                    f"{directory}: {what} was {was} in its runs and is {now[what]} now",
                    "run all again with --fresh or in another --output",
                )


def set_failed_runs_aside(directory: Path) -> None:
    """Move the failed runs of a directory of results to ``failed.jsonl``, so that they count as missing.

    If it is killed midway, each record is in at least one of the two files.
    """
    results = finished_runs_in(directory)
    failed = [result for result in results if result.status == "failed"]
    for result in failed:
        append_record(directory / FAILED_FILE, result)
    if failed:
        replace_results(directory / RESULTS_FILE, [result for result in results if result not in failed])


def find_unfinished_results(study: Study, out: Path, seed: int | None) -> Path | None:
    """The latest results of ``study`` if they are incomplete, and fingerprint and seed match."""
    directory = find_latest_results(study, out, seed)
    if directory is None:
        return None
    missing = lacks_complete_block(
        study, read_study_info(directory / STUDY_FILE).seed, finished_runs_in(directory)
    )
    return directory if missing else None


def find_latest_results(study: Study, out: Path, seed: int | None) -> Path | None:
    """The latest results of ``study``, complete or not, if fingerprint and seed match.

    Raises:
        TierwiseError: another user made them, or may change them: runs are added to the caller's own only.
    """
    directory = own_latest_results(path_below(out, study.name))
    if directory is None or not os.path.lexists(directory / STUDY_FILE):
        return None
    info = read_study_info(directory / STUDY_FILE)
    if info.fingerprint != study_fingerprint(study) or (seed is not None and seed != info.seed):
        return None
    return directory.resolve()


def finished_runs_in(directory: Path) -> list[RunResult]:
    """Finished runs in a directory of results."""
    file, info = directory / RESULTS_FILE, read_study_info(directory / STUDY_FILE)
    return read_results(file, study=info.name, seed=info.seed) if os.path.lexists(file) else []


def _create(info: StudyInfo, out: Path) -> Path:
    started = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    latest = path_below(out, info.name, LATEST)
    if os.path.lexists(latest) and not latest.is_symlink():
        raise TierwiseError(
            f"{latest} is no symbolic link, which it is where a study has run",
            f"rename it, as to {latest.parent / 'earlier'}, or give another --output",
        )
    with os_errors(latest.parent, "give --output a directory that you may write"):
        make_own_folder(latest.parent)
        directory = _new_of(latest.parent, started)
        write_study_info(directory / STUDY_FILE, info)
        link = latest.with_name(f"{LATEST}-{directory.name}")
        link.symlink_to(directory.name)
        link.replace(latest)  # at once: another start may do the same
    return directory


def _new_of(parent: Path, started: str) -> Path:
    """A new folder, with a number if another study began in the same second."""
    for name in chain([started], (f"{started}-{number}" for number in count(2))):
        with suppress(FileExistsError):
            make_new_folder(parent / name)
            return parent / name
    raise AssertionError("a number is free")


def _info(study: Study, skipped: dict[str, str], seed: int) -> StudyInfo:
    same = study.model_dump(include={"name", "question", "baseline", "repeats", "paper", "notes"})
    return StudyInfo(
        **same,
        placements=list(study.placements),
        sweep=swept_values(study.sweep),
        skipped=skipped,
        seed=seed,
        fingerprint=study_fingerprint(study),
    )
