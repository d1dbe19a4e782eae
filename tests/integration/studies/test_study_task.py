"""A task of a study on another host."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.tiny_study import hosted_study
from tierwise.lab.studies.runner.study_hosts import RunTask, run_on_this_host
from tierwise.lab.studies.study import Overrides, Sweep, plan_runs
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA
from tierwise.results import RunResult, StudyHost


def test_a_task_brings_the_users_own_files(own: Path, tmp_path: Path, run_dir: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(DATA / "workloads" / "single_commit", folder)
    planned = hosted_study(own, 1, 20, str(folder))
    task = RunTask.of(planned, 1)
    shutil.rmtree(folder)  # as on another host
    (plan, _) = plan_runs(planned, 1)
    result = RunResult.model_validate_json(run_on_this_host(task.for_run(0, plan.run_id, "there")))
    assert (result.status, result.workload.name, result.host) == ("ok", "mine", StudyHost(name="there"))
    assert not list(run_dir.glob("directory-*"))
    evil = RunTask(task.study, 1, files={("workload", "..", "..", "x"): "text"})
    with pytest.raises(TierwiseError, match="cannot be the name of a file"):
        run_on_this_host(evil.for_run(0, plan.run_id, "there"))


def test_a_task_brings_the_workloads_of_variants(own: Path, tmp_path: Path, run_dir: Path) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(DATA / "workloads" / "single_commit", folder)
    planned = hosted_study(own, 1, 20)
    variants = {"before": Overrides(), "after": Overrides(workload=str(folder))}
    planned = planned.model_copy(update={"variants": variants, "sweep": Sweep(variant=list(variants))})
    task = RunTask.of(planned, 1)
    shutil.rmtree(folder)
    names = {}
    for plan in plan_runs(planned, 1):
        result = RunResult.model_validate_json(run_on_this_host(task.for_run(0, plan.run_id, "there")))
        names[plan.setting["variant"]] = (result.status, result.workload.name)
    assert names == {"before": ("ok", "single_commit"), "after": ("ok", "theirs")}
