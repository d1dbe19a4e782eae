"""The end of a process takes nothing with it that belongs to another user or another pid namespace."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.other_users import needs_root, run, running
from tierwise.host import ledger, processes, users
from tierwise.host.clean import clean
from tierwise.lab.validation.servers.base import missing
from tierwise.lab.validation.servers.postgres import PostgresServer

pytestmark = needs_root
_SEGMENT = """
import ctypes, os
print(ctypes.CDLL(None).shmget(0, 4096, 0o1600), os.getpid(), flush=True)
"""
_IPC_RMID, _IPC_STAT = 0, 2


def segment_exists(segment: int) -> bool:
    room = ctypes.create_string_buffer(512)
    return ctypes.CDLL(None).shmctl(segment, _IPC_STAT, room) == 0


def remove_segment(segment: int) -> None:
    ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None)


@pytest.fixture
def segment() -> Iterator[int]:
    made = ctypes.CDLL(None).shmget(0, 4096, 0o1600)
    yield made
    remove_segment(made)


@pytest.mark.parametrize("facts", [{}, {"pid": 0}])
def test_shared_memory_of_another_pid_namespace_stays(
    facts: dict[str, int], segment: int, run_dir: Path
) -> None:
    code = (
        "from tierwise.host import ledger, processes\n"
        f"processes.end(ledger.add('process', 'none-00000000', **{facts}))\n"
    )
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert segment_exists(segment)


def test_shared_memory_of_another_user_stays_though_its_makers_pid_is_used_again(run_dir: Path) -> None:
    status, output = run(_SEGMENT)
    assert status == 0
    segment, pid = map(int, output.split())
    try:
        processes.end(ledger.add("process", "again-00000000", pid=pid))
        assert segment_exists(segment)
    finally:
        remove_segment(segment)


def test_own_shared_memory_is_removed(run_dir: Path) -> None:
    made = subprocess.run([sys.executable, "-c", _SEGMENT], capture_output=True, text=True, check=True)
    segment, pid = map(int, made.stdout.split())
    try:
        processes.end(ledger.add("process", "own-00000000", pid=pid))
        assert not segment_exists(segment)
    finally:
        remove_segment(segment)


def test_a_process_with_a_copied_token_is_not_waited_for(run_dir: Path) -> None:
    entry = ledger.add("process", "copied-00000000")
    token = {"PATH": os.environ["PATH"], processes.TOKEN: entry.name}
    with running("import time; print('runs', flush=True); time.sleep(1000)", env=token) as theirs:
        processes.end(entry)
        assert theirs.poll() is None


def _owned_by(uid: int) -> set[str]:
    """What an account has in shared memory."""
    files = {str(path) for path in Path("/dev/shm").glob("PostgreSQL.*") if path.stat().st_uid == uid}
    lines = Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]
    return files | {line.split()[1] for line in lines if int(line.split()[9]) == uid}


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


_SERVER = """
import time
from tierwise.lab.validation.servers.postgres import PostgresServer
server = PostgresServer({})
server.data = server.own_directory(server.home, "data")
server.make_empty()
server.start()
print(" ".join(map(str, server.pids())), flush=True)
time.sleep(1000)
"""
_INITDB = """
from tierwise.lab.validation.servers.postgres import PostgresServer
server = PostgresServer({})
server.data = server.own_directory(server.home, "data")
server.make_empty()
"""


@pytest.mark.skipif(missing("postgres") is not None, reason="PostgreSQL is not installed")
@pytest.mark.parametrize("servers_too", [True, False])
def test_shared_memory_of_a_killed_server_goes_with_it(servers_too: bool, run_dir: Path) -> None:
    account = users.server_user()
    assert account is not None
    before = _owned_by(account.uid)
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        try:
            assert any("/dev/shm/" in name for name in _owned_by(account.uid) - before)
        finally:
            owner.kill()
            _kill(pids if servers_too else [])
    clean()
    assert not _owned_by(account.uid) - before


@pytest.mark.skipif(missing("postgres") is not None, reason="PostgreSQL is not installed")
def test_a_live_servers_shared_memory_stays(run_dir: Path) -> None:
    server = PostgresServer({})
    try:
        server.data = server.own_directory(server.home, "data")
        server.make_empty()
        server.start()
        account = users.server_user()
        assert account is not None
        before = _owned_by(account.uid)
        processes.end(ledger.add("process", "other-00000000"))
        assert _owned_by(account.uid) == before
        assert server.query("SELECT 1") == [(1,)]
    finally:
        server.remove()


@pytest.mark.skipif(missing("postgres") is not None, reason="PostgreSQL is not installed")
def test_shared_memory_of_a_killed_initdb_goes(run_dir: Path) -> None:
    """Its children, whose pids nobody notes, are killed together with it and its owner."""
    account = users.server_user()
    assert account is not None
    before = _owned_by(account.uid)
    with subprocess.Popen([sys.executable, "-c", _INITDB]) as owner:
        deadline = time.monotonic() + 60
        while not (made := _owned_by(account.uid) - before) or len(made) < 2:
            assert time.monotonic() < deadline and owner.poll() is None
        owner.kill()
        [entry] = ledger.entries("process")
        _kill(processes._members(entry))
    clean()
    assert not _owned_by(account.uid) - before
