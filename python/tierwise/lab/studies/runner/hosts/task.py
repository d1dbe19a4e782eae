"""One run for another host: texts only, from which that host makes the study and its plan again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.host import clean, ledger
from tierwise.lab.studies.runner.hosts.blocks import block
from tierwise.lab.studies.runner.run import execute
from tierwise.lab.studies.study import Study, at
from tierwise.lab.workloads import reader
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require
from tierwise.model.input_files import read_text, validated
from tierwise.model.names import path_in, resolved
from tierwise.model.output_files import write_file
from tierwise.results import RunResult, StudyHost

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
        """A task without a run yet; paths of the user's own files are replaced by names in ``files``.

        Raises:
            TierwiseError: such a file cannot be read, or the workload is a single script.
        """
        files: dict[tuple[str, ...], str] = {}
        devices = dict(study.devices)
        for name, spec in study.devices.items():
            if spec.profile is not None and profiles.is_path(spec.profile):
                loaded = profiles.load(spec.profile)
                files[name, loaded.file.name] = loaded.text
                files.update({(name, f"{other}.toml"): text for other, text in loaded.library.items()})
                devices[name] = spec.model_copy(update={"profile": f"{name}/{loaded.file.name}"})
        workload = study.workload
        if workload not in reader.names():
            folder = resolved(Path(workload))
            files.update(_texts(folder))
            workload = f"{_WORKLOAD}/{folder.name}"
        packed = study.model_copy(update={"devices": devices, "workload": workload})
        return cls(packed.model_dump_json(), seed, files=files)

    def for_run(self, repeat: int, run_id: str, host: str) -> RunTask:
        """The task of one run."""
        return replace(self, repeat=repeat, run_id=run_id, host=host)


def run_here(task: RunTask) -> str:
    """Run it on this host, after removing what dead owners left, and give its record as JSON.

    Raises:
        HostError: a library for studies is not installed.
        TierwiseError: if the run cannot be prepared.
    """
    require("lab", "a study", ["numpy"])
    import_module("numpy")  # at its first use it would take processor time from a measured phase
    clean.clean_before(lambda _: None)
    with _unpacked(task) as study:
        plan = next(plan for plan in block(study, task.seed, task.repeat) if plan.run_id == task.run_id)
        result = execute(at(study, plan.setting), plan, task.seed, lambda _: None)
    host = StudyHost(name=task.host)
    workload = result.workload.model_copy(update={"name": Path(study.workload).name})
    return result.model_copy(update={"host": host, "workload": workload}).model_dump_json()


def result_of(task: RunTask, text: str) -> RunResult:
    """The record that a host gave, which must be of the run it was asked for."""
    result = validated(RunResult, text, f"host {task.host} gave no valid result", "check its worker")
    if result.run_id != task.run_id or result.host is None or result.host.name != task.host:
        raise TierwiseError(f"host {task.host} gave the result of another run", "check its worker")
    return result


@contextmanager
def _unpacked(task: RunTask) -> Iterator[Study]:
    """The study, with its own files in a directory that is deleted on exit."""
    study = Study.model_validate_json(task.study)
    if not task.files:
        yield study
        return
    with ledger.directory("tierwise-study") as folder:
        for parts, text in task.files.items():
            write_file(path_in(folder, *parts), text)
        devices = {
            name: spec.model_copy(update={"profile": str(folder / spec.profile)})
            if spec.profile is not None and profiles.is_path(spec.profile)
            else spec
            for name, spec in study.devices.items()
        }
        own = study.workload.startswith(f"{_WORKLOAD}/")
        workload = str(path_in(folder, *study.workload.split("/"))) if own else study.workload
        yield study.model_copy(update={"devices": devices, "workload": workload})


def _texts(folder: Path) -> dict[tuple[str, ...], str]:
    """The files of a workload's folder."""
    if not folder.is_dir():
        raise TierwiseError(f"--hosts: workload {folder} is no folder", "put the script in a folder")
    texts: dict[tuple[str, ...], str] = {}
    letters = 0
    for directory, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(directory, name)
            parts = (_WORKLOAD, folder.name, *path.relative_to(folder).parts)
            path_in(folder, *parts)  # refuses a name that the host would refuse
            texts[parts] = read_text(path, _FIX, in_folder=True)
            letters += len(texts[parts])
            if len(texts) > _MOST_FILES or letters > _MOST_LETTERS:
                raise TierwiseError(
                    f"{folder}: above {_MOST_FILES} files or {_MOST_LETTERS >> 20} MiB",
                    _FIX,
                )
    return texts
