"""The contract of ``lab.engines.base.Engine`` where it begins and ends: places, settings, no space."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.engine_contract import EngineCase, ledger_names, open_directory, rows_of, wait_until_down
from support.paths import TESTS
from tierwise.host import clean, ledger, processes
from tierwise.lab import engines
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> EngineCase:
    chosen: EngineCase = request.param
    if reason := chosen.missing() or chosen.reason(request.node.originalname):
        pytest.skip(reason)
    return chosen


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.mark.parametrize("chosen", CASES, ids=lambda case: case.name)
def test_a_gap_names_a_test_and_the_engine_says_why(chosen: EngineCase) -> None:
    suite = [Path(__file__), Path(__file__).with_name("test_engine_contract.py")]
    tests = {name for file in suite for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)}
    assert chosen.unsupported.keys() <= tests
    assert chosen.missing() or set(chosen.unsupported.values()) <= chosen.create().unsupported.keys()


class Noted:
    """A confinement that confines nothing."""

    def __init__(self) -> None:
        self.pids: list[int] = []

    def confine(self, pid: int) -> None:
        self.pids.append(pid)


def test_only_the_system_must_have_a_place(case: EngineCase, directory: Path) -> None:
    """Each server that is started is confined; one that is killed is a failure, and starts again."""
    with case.create() as engine:
        engine.confinement = noted = Noted()
        engine.init({Role.SYSTEM: directory})
        engine.start()
        pid = engine.server_pid
        assert pid is not None and noted.pids[-1] == pid
        case.fill(engine, rows=10)
        assert rows_of(case, engine) == 10
        assert engine.failure() is None
        os.kill(pid, signal.SIGKILL)
        wait_until_down(engine)
        assert engine.failure() is not None
        engine.start()
        assert noted.pids[-1] == engine.server_pid != pid
        assert rows_of(case, engine) == 10


def test_a_role_that_cannot_be_placed_is_refused(case: EngineCase, directory: Path) -> None:
    engine = case.create()
    foreign = next((role for role in Role if role not in engine.roles), None)
    if foreign is None:
        pytest.skip("it can place every role")
    with pytest.raises(TierwiseError, match=f"engine {case.name} cannot place the role {foreign}") as caught:
        engine.init({Role.SYSTEM: directory, foreign: directory})
    assert all(role in caught.value.fix for role in engine.roles)
    assert not list(directory.iterdir())


def test_a_place_that_is_not_there_is_refused(case: EngineCase, directory: Path) -> None:
    with pytest.raises(TierwiseError, match="nowhere is not a directory"):
        case.create().init({Role.SYSTEM: directory / "nowhere"})


def test_the_system_needs_a_place(case: EngineCase, directory: Path) -> None:
    with pytest.raises(TierwiseError, match="no place for the role system"):
        case.create().init({Role.DATA: directory})


@pytest.mark.parametrize("fault", ["unknown", "value"])
def test_a_bad_setting_is_named(case: EngineCase, directory: Path, fault: str) -> None:
    name, value = case.bad_value if fault == "value" else (case.bad_value[0] + "x", "1")
    before = ledger_names()
    with (
        pytest.raises(TierwiseError, match=f"setting {name}") as caught,
        engines.create_engine(case.name, {name: value}) as engine,
    ):
        engine.init({Role.SYSTEM: directory})
        engine.start()
    assert "\n" not in str(caught.value)
    if fault == "unknown":
        assert case.bad_value[0] in caught.value.fix
    assert ledger_names() == before
    assert not list(directory.iterdir())


def test_a_full_device_is_one_line(case: EngineCase, directory: Path, small_device: Path) -> None:
    before = ledger_names()
    with case.create() as engine:
        engine.init({Role.SYSTEM: directory, Role.DATA: small_device})
        engine.start()
        with pytest.raises(TierwiseError, match=r"(?i)no space left|full") as caught:
            case.fill(engine, rows=200_000)
        assert "space" in caught.value.fix
        assert "\n" not in str(caught.value)
    assert ledger_names() == before
    assert not list(small_device.iterdir())


@pytest.fixture
def small_device() -> Iterator[Path]:
    """A file system of 8 MiB."""
    with open_directory() as path:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tierwise-test", path],
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            pytest.skip("cannot mount a small file system: needs root")
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True)


def test_a_killed_owner_leaves_only_what_the_ledger_names(case: EngineCase, directory: Path) -> None:
    """Its roles share a place, too."""
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from support.engine_cases import CASES
case = next(case for case in CASES if case.name == {case.name!r})
engine = case.create()
engine.init(dict.fromkeys(engine.roles, pathlib.Path({str(directory)!r})))
engine.start()
case.fill(engine, rows=10)
print(engine.server_pid, flush=True)
os.kill(os.getpid(), 9)
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert completed.stdout, completed.stderr
    server_pid = int(completed.stdout)
    clean.clean()
    assert ledger.ProcessIdentity.of(server_pid) is None
    assert not list(directory.iterdir())


def test_an_interrupted_stop_leaves_no_process(
    case: EngineCase, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ledger_names()
    with case.create() as engine:
        engine.init(dict.fromkeys(engine.roles, directory))
        engine.start()
        pid = engine.server_pid
        assert pid is not None

        def interrupted(*_: object) -> int:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(processes.Process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.stop()
    assert ledger.ProcessIdentity.of(pid) is None
    assert ledger_names() == before


def test_an_unknown_engine_is_named_with_its_neighbour() -> None:
    with pytest.raises(TierwiseError, match="engine 'postgress' is unknown: did you mean postgres"):
        engines.create_engine("postgress")
