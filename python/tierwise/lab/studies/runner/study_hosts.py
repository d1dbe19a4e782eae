"""A study on many hosts: whole blocks of runs go to hosts, results come back run by run.

Which run comes next on which host is derived from the finished runs alone, so that a study resumes. A run
goes to another host as texts only, from which that host makes the study and its plan again.

Not here: one run of a study; see ``database_run``.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierwise.device_models import profiles
from tierwise.host import clean, ledger
from tierwise.lab.studies.runner.database_run import execute_run
from tierwise.lab.studies.study import RunPlan, Study, plan_runs, study_at_point
from tierwise.lab.workloads import workload_reader
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.input_files import read_text
from tierwise.model.names import path_below, resolved_path
from tierwise.model.output_files import write_file
from tierwise.results import RunResult, StudyHost
from tierwise.results.result_files import read_record, require_consistent_results

if TYPE_CHECKING:
    from tierwise.lab.studies.runner.dask_hosts import DaskHosts, DaskRun

RETURN_TIMEOUT_S = 60
"""How long a study waits for a host when it has none."""
_POLL_S = 0.2
_MOST_DEATHS = 3
"""Of hosts in a row under one placement, before the study stops."""


@dataclass(frozen=True)
class _Running:
    address: str
    task: RunTask
    plan: RunPlan
    pending: DaskRun


def run_blocks(
    study: Study,
    seed: int,
    finished: Sequence[RunResult],
    hosts: DaskHosts,
    started: Callable[[RunPlan, str], None],
    ended: Callable[[RunPlan, RunResult], None],
) -> None:
    """Run the blocks that a study lacks; each stays on the host that began it.

    Raises:
        TierwiseError: a run cannot be prepared, no host is left, or a placement seems to kill its hosts.
            Results before are kept.
    """
    blocks, common, results = (
        StudyBlocks.after(study, seed, finished),
        RunTask.of(study, seed),
        list(finished),
    )
    running: dict[str, _Running] = {}
    deaths: Counter[str] = Counter()
    last_seen_s = time.monotonic()
    try:
        while not blocks.complete:
            present = hosts.present()
            for host in list(running):
                attempt = running[host]
                if attempt.pending.done() or attempt.address != present.get(host):
                    running.pop(host)
                    if (result := _result(host, attempt)) is None:
                        _count_death(deaths, attempt.plan)
                        continue
                    of_block = [other for other in results if other.repeat == result.repeat]
                    require_consistent_results([*of_block, result], f"host {host}", study.name, seed)
                    results.append(result)
                    ended(attempt.plan, result)
                    blocks.finish(attempt.plan)
                    deaths.pop(attempt.plan.placement.name, None)
            for host in sorted(present.keys() - running.keys()):
                if (plan := blocks.next_run(host, present)) is None:
                    continue
                task = common.for_run(plan.repeat, plan.run_id, host)
                pending = hosts.start(present[host], run_on_this_host, task)
                running[host] = _Running(present[host], task, plan, pending)
                started(plan, host)
            last_seen_s = time.monotonic() if present else last_seen_s
            if time.monotonic() - last_seen_s > RETURN_TIMEOUT_S:
                raise TierwiseError(
                    "--hosts: no host is left",
                    "start workers that have tierwise[cluster,lab], then the study again: it resumes",
                )
            time.sleep(_POLL_S)
    finally:
        for attempt in running.values():
            attempt.pending.cancel()


def _result(host: str, running: _Running) -> RunResult | None:
    """The result of a run that is over; ``None`` if its host died."""
    if not running.pending.done():
        running.pending.cancel()
        return None
    try:
        text = running.pending.result()
    except TierwiseError as error:
        raise TierwiseError(f"host {host}: {error.message}", error.fix) from error
    return None if text is None else run_record_of(running.task, running.plan, text)


def _count_death(deaths: Counter[str], plan: RunPlan) -> None:
    name = plan.placement.name
    deaths[name] += 1
    if deaths[name] >= _MOST_DEATHS:
        raise TierwiseError(
            f"--hosts: {deaths[name]} hosts died in a row under placement {name}",
            "see the logs of their workers, then run the study again: it resumes",
        )


@dataclass
class StudyBlocks:
    """The blocks of a study, numbered as its repeats.

    A block stays on the host that began it. If that host is gone, its finished runs are kept, and a new block
    replaces it, with the next free number and a workload seed of its own. If the host returns first, it
    completes the block itself.

    Attributes:
        study: what to run.
        seed: of the order of runs.
        hosts: number of a block -> its host.
        missing: number of a block that began -> its runs that have no result yet.
    """

    study: Study
    seed: int
    hosts: dict[int, str] = field(default_factory=dict)
    missing: dict[int, list[RunPlan]] = field(default_factory=dict)

    @classmethod
    def after(cls, study: Study, seed: int, results: Iterable[RunResult]) -> StudyBlocks:
        """The blocks after these runs; a run of no named host counts for the machine that ran it."""
        schedule = cls(study, seed)
        finished: dict[int, set[str]] = defaultdict(set)
        for result in results:
            host = result.host.name if result.host else result.machine.host
            schedule.hosts.setdefault(result.repeat, host)
            finished[result.repeat].add(result.run_id)
        for number, run_ids in finished.items():
            plans = runs_of_block(study, seed, number)
            schedule.missing[number] = [plan for plan in plans if plan.run_id not in run_ids]
        return schedule

    @property
    def complete(self) -> bool:
        """Whether as many blocks as the study has repeats are complete."""
        return self._complete >= self.study.repeats

    def next_run(self, host: str, present: Collection[str]) -> RunPlan | None:
        """The next run of an idle host, of which the block is from now on; none if others do the rest."""
        wanted = self.study.repeats - self._complete
        still_open = [n for n, runs in self.missing.items() if runs and self.hosts[n] in present]
        chosen = sorted(still_open, key=lambda number: (len(self.missing[number]), number))[:wanted]
        own = [number for number in chosen if self.hosts[number] == host]
        if not own and len(chosen) == wanted:
            return None
        number = own[0] if own else self._begin(host)
        return self.missing[number][0]

    def finish(self, plan: RunPlan) -> None:
        """Take note that a run has a result."""
        self.missing[plan.repeat].remove(plan)

    @property
    def _complete(self) -> int:
        return sum(not runs for runs in self.missing.values())

    def _begin(self, host: str) -> int:
        number = next(number for number in range(len(self.hosts) + 1) if number not in self.hosts)
        self.hosts[number] = host
        self.missing[number] = runs_of_block(self.study, self.seed, number)
        return number


def runs_of_block(study: Study, seed: int, number: int) -> list[RunPlan]:
    """The runs of one block, which may lie beyond the repeats of the study."""
    plans = plan_runs(study.model_copy(update={"repeats": number + 1}), seed)
    return [plan for plan in plans if plan.repeat == number]


def lacks_complete_block(study: Study, seed: int, results: Collection[RunResult]) -> bool:
    """Whether a study on many hosts lacks a complete block."""
    return not StudyBlocks.after(study, seed, results).complete


_WORKLOAD = "workload"
_MOST_FILES = 1000
_MOST_LETTERS = 64 << 20
_FIX = "leave only the workload's own files in its folder"


@dataclass(frozen=True)
class RunTask:
    """What a host needs for one run.

    Attributes:
        study: as JSON.
        seed: of the order of runs.
        repeat: number of the block.
        run_id: the run within the block.
        host: name of the host, for the result.
        files: the user's own workload and profiles: parts of the path, and the text.
    """

    study: str
    seed: int
    repeat: int = 0
    run_id: str = ""
    host: str = ""
    files: dict[tuple[str, ...], str] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, seed: int) -> RunTask:
        """A task without a run yet; paths of the user's own files are replaced by names in ``files``."""
        files: dict[tuple[str, ...], str] = {}
        devices = dict(study.devices)
        for name, spec in study.devices.items():
            if spec.profile is not None and profiles.is_profile_path(spec.profile):
                loaded = profiles.load_profile(spec.profile)
                files[name, loaded.file.name] = loaded.text
                files.update({(name, f"{other}.toml"): text for other, text in loaded.library.items()})
                devices[name] = spec.model_copy(update={"profile": f"{name}/{loaded.file.name}"})
        varied = [variant.workload for variant in study.variants.values() if variant.workload is not None]
        packed = {name: name for name in (study.workload, *varied)}
        for number, name in enumerate(sorted(packed.keys() - set(workload_reader.workload_names()))):
            folder = resolved_path(Path(name))
            parts = (_WORKLOAD, str(number), folder.name)
            files.update(_texts(folder, parts))
            packed[name] = "/".join(parts)
        update = {"devices": devices, **_with_workloads(study, packed.__getitem__)}
        return cls(study.model_copy(update=update).model_dump_json(), seed, files=files)

    def for_run(self, repeat: int, run_id: str, host: str) -> RunTask:
        """The task of one run."""
        return replace(self, repeat=repeat, run_id=run_id, host=host)


def run_on_this_host(task: RunTask) -> str:
    """Run it on this host, after removing what dead owners left, and give its record as JSON."""
    require_extra("lab", "a study", ["numpy"])
    import_module("numpy")  # at its first use it would take processor time from a measured phase
    clean.clean_before_operation(lambda _: None)
    with _unpacked(task) as study:
        plan = next(
            plan for plan in runs_of_block(study, task.seed, task.repeat) if plan.run_id == task.run_id
        )
        result = execute_run(study_at_point(study, plan.setting), plan, task.seed, lambda _: None)
    host = StudyHost(name=task.host)
    workload = result.workload.model_copy(update={"name": Path(result.workload.name).name})
    return result.model_copy(update={"host": host, "workload": workload}).model_dump_json()


def run_record_of(task: RunTask, plan: RunPlan, text: str) -> RunResult:
    """The record that a host gave, which must be of the run it was asked for."""
    result = read_record(RunResult, text, f"host {task.host} gave no valid result", "check its worker")
    asked = (plan.run_id, plan.engine, plan.placement.name, plan.setting, plan.repeat, plan.order, task.host)
    given = (result.run_id, result.engine.name, result.placement, result.setting, result.repeat, result.order)
    if asked != (*given, result.host and result.host.name):
        raise TierwiseError(f"host {task.host} gave the result of another run", "check its worker")
    return result


@contextmanager
def _unpacked(task: RunTask) -> Iterator[Study]:
    """The study, with its own files in a directory that is deleted on exit."""
    study = Study.model_validate_json(task.study)
    if not task.files:
        yield study
        return
    with ledger.make_directory("tierwise-study") as folder:
        for parts, text in task.files.items():
            write_file(path_below(folder, *parts), text)
        devices = {
            name: spec.model_copy(update={"profile": str(folder / spec.profile)})
            if spec.profile is not None and profiles.is_profile_path(spec.profile)
            else spec
            for name, spec in study.devices.items()
        }

        def unpacked(name: str) -> str:
            return str(path_below(folder, *name.split("/"))) if name.startswith(f"{_WORKLOAD}/") else name

        yield study.model_copy(update={"devices": devices, **_with_workloads(study, unpacked)})


def _with_workloads(study: Study, renamed: Callable[[str], str]) -> dict[str, Any]:
    """The fields of a study that name workloads, with other names in them."""
    variants = {
        name: variant
        if variant.workload is None
        else variant.model_copy(update={"workload": renamed(variant.workload)})
        for name, variant in study.variants.items()
    }
    return {"workload": renamed(study.workload), "variants": variants}


def _texts(folder: Path, below: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    """The files of a workload's folder, by the parts of their paths on a host."""
    if not folder.is_dir():
        raise TierwiseError(f"--hosts: workload {folder} is no folder", "put the script in a folder")
    texts: dict[tuple[str, ...], str] = {}
    letters = 0
    for directory, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(directory, name)
            parts = (*below, *path.relative_to(folder).parts)
            path_below(folder, *parts)  # refuses a name that the host would refuse
            texts[parts] = read_text(path, _FIX, in_folder=True)
            letters += len(texts[parts])
            if len(texts) > _MOST_FILES or letters > _MOST_LETTERS:
                raise TierwiseError(
                    f"{folder}: above {_MOST_FILES} files or {_MOST_LETTERS >> 20} MiB",
                    _FIX,
                )
    return texts
