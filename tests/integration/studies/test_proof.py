"""Proof of placement: a role that leaks to another device fails its run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tiny_study import tiny_study
from tierwise.lab.engines import Engine
from tierwise.lab.studies.runner import database_run
from tierwise.lab.studies.study import plan_runs
from tierwise.model.placement import Role
from tierwise.results import RunResult

pytestmark = pytest.mark.usefixtures("run_dir")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory on another file system than the placed device."""
    path = Path("/dev/shm") / f"tierwise-elsewhere-{os.getpid()}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def execute(own: Path) -> RunResult:
    fields = 'clients = 2\ntransactions = 50\nsettings.postgres.shared_buffers = "16MB"'
    chosen = tiny_study(own, "postgres", "single_commit", fields)
    (plan,) = plan_runs(chosen, 1)
    return database_run.execute_run(chosen, plan, 1, lambda _: None)


def test_a_run_proves_where_its_files_were(own: Path) -> None:
    result = execute(own)
    assert result.status == "ok", result.problems
    assert result.proof.keys() == {Role.LOG, Role.DATA, Role.INDEX, Role.TEMP, Role.SYSTEM}
    assert all(not role_proof.strays and role_proof.device == "own" for role_proof in result.proof.values())
    assert all(result.proof[role].files for role in (Role.LOG, Role.DATA, Role.INDEX, Role.SYSTEM))
    log = result.proof[Role.LOG]
    assert log.written_bytes and (log.share is None or log.share > 0.9)
    assert 0 < result.residency[Role.SYSTEM] <= 1


def test_a_log_that_was_led_elsewhere_fails_the_run(
    own: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if someone had moved the log's directory and left a link: PostgreSQL itself does not mind."""
    prepared = database_run._load

    def with_a_leak(bench: database_run.RunContext) -> None:
        prepared(bench)
        move_log(bench.engine, elsewhere)

    monkeypatch.setattr(database_run, "_load", with_a_leak)
    result = execute(own)
    assert result.status == "failed"
    assert result.problems[0].startswith(f"role log leaked: {elsewhere}/log/0000")
    assert result.problems[0].endswith("is not on device own")
    assert result.proof[Role.LOG].strays and not result.proof[Role.DATA].strays


def move_log(engine: Engine, elsewhere: Path) -> None:
    engine.stop()
    log = engine.directories[Role.LOG]
    shutil.copytree(log, elsewhere / "log")
    owner = log.stat()
    for path in (elsewhere, *elsewhere.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    shutil.rmtree(log)
    log.symlink_to(elsewhere / "log")
    engine.start()
