"""Embedded engines: the worker, the wire to it, and what happens when either end dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.embedded_toy import ToyEngine, toy_path
from support.engine_contract import ledger_names, until
from tierwise.host import clean, ledger
from tierwise.lab.engines.base import ResourceLimits
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role


@pytest.fixture(autouse=True)
def findable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", toy_path(), prepend=os.pathsep)


@pytest.fixture
def engine(open_path: Path) -> Iterator[ToyEngine]:
    before = ledger_names()
    with ToyEngine("toy") as made:
        made.limits = ResourceLimits(memory_bytes=1 << 25)
        made.init({Role.SYSTEM: open_path})
        made.start()
        yield made
    assert ledger_names() == before
    assert not list(open_path.iterdir())


def put(engine: ToyEngine, key: str) -> None:
    engine.execute_schema([(Role.DATA, f"put {key}")])


def kept(engine: ToyEngine) -> int | None:
    return engine.counters().commits


def test_a_request_reaches_the_adapter_and_its_answer_comes_back(engine: ToyEngine) -> None:
    put(engine, "a")
    counters = engine.counters()
    assert counters.commits == 1
    assert counters.cpu_s is not None and counters.cpu_s > 0
    assert engine.settings()["memory"] == str(1 << 25)
    assert engine.processes() == [engine.server_pid]


def test_requests_of_several_threads_overlap(engine: ToyEngine) -> None:
    waits = [
        threading.Thread(target=engine.execute_schema, args=([(Role.DATA, "wait 2")],)) for _ in range(8)
    ]
    for wait in waits:
        wait.start()
    most = 0
    while most < 9 and any(wait.is_alive() for wait in waits):
        most = max(most, engine.ask("count_threads"))
    for wait in waits:
        wait.join()
    assert most >= 9


def test_a_failure_is_one_line_and_the_worker_goes_on(engine: ToyEngine) -> None:
    with pytest.raises(TierwiseError, match="engine toy: this is wrong: ") as caught:
        engine.execute_schema([(Role.DATA, "fail")])
    assert "\n" not in str(caught.value)
    put(engine, "a")
    assert kept(engine) == 1


def test_an_orderly_stop_closes_the_database_and_a_crash_does_not(engine: ToyEngine) -> None:
    put(engine, "a")
    engine.stop()
    assert not engine.running
    engine.start()
    put(engine, "lost")
    engine.crash_stop()
    assert not engine.running
    engine.start()
    assert kept(engine) == 1
    engine.restart_cold()
    assert kept(engine) == 1


def test_a_worker_that_ends_by_itself_is_told_to_all_who_wait(engine: ToyEngine) -> None:
    heard: list[TierwiseError] = []

    def wait() -> None:
        try:
            engine.execute_schema([(Role.DATA, "wait 60")])
        except TierwiseError as error:
            heard.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    with pytest.raises(TierwiseError, match="engine toy has ended"):
        engine.execute_schema([(Role.DATA, "crash")])
    waiting.join(60)
    assert "engine toy has ended" in heard[0].message
    assert engine.failure() == "engine toy has ended"
    with pytest.raises(TierwiseError, match="engine toy has ended"):
        put(engine, "a")
    engine.start()
    put(engine, "a")


def test_a_bad_setting_leaves_nothing(open_path: Path) -> None:
    before = ledger_names()
    with pytest.raises(TierwiseError, match="engine toy cannot start: setting broken is bad"):
        ToyEngine("toy", {"broken": "1"}).init({Role.SYSTEM: open_path})
    with pytest.raises(TierwiseError, match="setting directory is not among those"):
        ToyEngine("toy", {"directory": "/"})
    assert ledger_names() == before
    assert not list(open_path.iterdir())


def test_an_adapter_that_cannot_be_loaded_is_told(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyEngine, "adapter", "embedded_nowhere:Adapter")
    with pytest.raises(TierwiseError, match=r"cannot start: ModuleNotFoundError: .*embedded_nowhere"):
        ToyEngine("toy").init({Role.SYSTEM: open_path})


def test_the_worker_exits_when_its_owner_is_killed(open_path: Path) -> None:
    script = f"""
import os, pathlib
from support.embedded_toy import ToyEngine
from tierwise.model.placement import Role
engine = ToyEngine("toy")
engine.init({{Role.SYSTEM: pathlib.Path({str(open_path)!r})}})
engine.start()
print(engine.server_pid, flush=True)
os.kill(os.getpid(), 9)
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    until(lambda: ledger.ProcessIdentity.of(int(completed.stdout)) is None)
    clean.clean()
    assert not list(open_path.iterdir())


def test_an_interrupt_ends_a_request_and_the_worker(open_path: Path) -> None:
    script = f"""
import pathlib
from support.embedded_toy import ToyEngine
from tierwise.model.placement import Role
try:
    with ToyEngine("toy") as engine:
        engine.init({{Role.SYSTEM: pathlib.Path({str(open_path)!r})}})
        engine.start()
        print(engine.server_pid, flush=True)
        engine.execute_schema([(Role.DATA, "wait 60")])
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        time.sleep(0.2)
        owner.send_signal(signal.SIGINT)
        assert owner.stdout.read() == "interrupted\n"
    assert ledger.ProcessIdentity.of(pid) is None
    assert not list(open_path.iterdir())


def test_too_little_memory_is_refused(open_path: Path) -> None:
    engine = ToyEngine("toy")
    engine.limits = ResourceLimits(memory_bytes=1 << 20)
    with pytest.raises(TierwiseError, match="engine toy cannot work in 1M of memory: give it 16M at least"):
        engine.init({Role.SYSTEM: open_path})


def test_a_worker_that_the_kernel_kills_is_told_from_one_that_ends(engine: ToyEngine) -> None:
    assert engine.server_pid is not None
    os.kill(engine.server_pid, signal.SIGKILL)
    with pytest.raises(TierwiseError, match="was killed, as the kernel does where memory is short"):
        engine.ask("count_threads")
