"""Waits told from outside: threads that are known to do one thing, and the class that each is seen in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_contract import until
from tierwise.lab.engines.thread_waits import ThreadWaitProbe
from tierwise.model.placement import Role

SCRIPT = """
import ctypes, fcntl, os, select, sys, threading, time
held = open(sys.argv[2] + "/data", "w")
fcntl.flock(held, fcntl.LOCK_EX)

def fill(path):
    pipe = os.open(path, os.O_RDWR)
    while True:
        os.write(pipe, b"x" * 65536)

DO = {
    "cpu": lambda: [None for _ in iter(int, 1)],
    "futex": lambda: threading.Event().wait(),
    "sleep": lambda: time.sleep(60),
    "poll": lambda: select.select([os.pipe()[0]], [], []),
    "read": lambda: os.read(os.open(sys.argv[2] + "/data.pipe", os.O_RDWR), 1),
    "write": lambda: fill(sys.argv[2] + "/data.pipe"),
    "log": lambda: fill(sys.argv[2] + "/log.pipe"),
    "elsewhere": lambda: os.read(os.pipe()[0], 1),
    "lock": lambda: fcntl.flock(open(sys.argv[2] + "/data"), fcntl.LOCK_EX),
}

def work(what, name):
    ctypes.CDLL(None).prctl(15, name.encode())
    DO[what]()

for word in sys.argv[1].split(","):
    what, _, name = word.partition("/")
    threading.Thread(target=work, args=(what, name or "tierwise-client"), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "data.pipe")
    os.mkfifo(tmp_path / "log.pipe")
    return tmp_path


@pytest.fixture
def running(request: pytest.FixtureRequest, directory: Path) -> Iterator[int]:
    """A process with threads that do what the parameter says."""
    argv = [sys.executable, "-c", SCRIPT, request.param, str(directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def role_of(path: Path) -> Role | None:
    return {"data": Role.DATA, "data.pipe": Role.DATA, "log.pipe": Role.LOG}.get(path.name)


def seen(pid: int, *, sessions: int = 1, helped: bool = False) -> list[str]:
    probe = ThreadWaitProbe([pid], role_of, lambda: sessions, helped=helped)
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        return sorted(probe.sample_waits(0.01))
    finally:
        os.sched_setscheduler(0, *before)


def assert_seen(pid: int, expected: list[str], *, sessions: int = 1, helped: bool = False) -> None:
    """Once each thread is where it stays, it is seen there each time."""
    until(lambda: seen(pid, sessions=sessions, helped=helped) == expected)
    assert [seen(pid, sessions=sessions, helped=helped) for _ in range(5)] == [expected] * 5


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        ("cpu", "cpu"),
        ("futex", "lock"),
        ("sleep", "lock"),
        ("lock", "lock"),
        ("poll", "client"),
        ("read", "data_read"),
        ("write", "data_write"),
        ("log", "log_sync"),
        ("elsewhere", "other"),
    ],
    indirect=["running"],
)
def test_a_thread_is_seen_where_it_is(running: int, expected: str) -> None:
    assert_seen(running, [expected])


@pytest.mark.parametrize("running", ["read,cpu/other-thread,log/other-thread"], indirect=True)
def test_threads_of_another_name_do_not_count(running: int) -> None:
    assert_seen(running, ["data_read"])


@pytest.mark.parametrize("running", ["read"], indirect=True)
def test_a_session_without_a_thread_waits_for_its_client(running: int) -> None:
    assert_seen(running, ["client", "client", "data_read"], sessions=3)
    assert len(seen(running, sessions=200)) == 50


@pytest.mark.parametrize("running", ["log,futex,futex"], indirect=True)
def test_who_waits_while_another_flushes_the_log_waits_for_that_flush(running: int) -> None:
    assert_seen(running, ["log_lock", "log_lock", "log_sync"], sessions=3)


@pytest.mark.parametrize("running", ["futex,read/helper,log/helper,read/helper,futex/helper"], indirect=True)
def test_a_client_is_seen_through_the_threads_that_work_for_it(running: int) -> None:
    assert_seen(running, ["lock"])
    assert_seen(running, ["data_read"], helped=True)


@pytest.mark.parametrize("running", ["futex,sleep/helper"], indirect=True)
def test_a_client_whose_helpers_do_nothing_waits_for_something_else(running: int) -> None:
    assert_seen(running, ["other"], helped=True)


def test_a_process_that_is_gone_is_an_error() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(OSError, match="No such file"):
        seen(ended.pid)
