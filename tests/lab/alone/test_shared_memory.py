"""Shared memory of PostgreSQL servers: gone with those that were killed, and with no other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.other_users import needs_root
from tierwise.host import ledger, processes, users
from tierwise.host.clean import clean
from tierwise.lab.validation.servers.case_database import missing_package
from tierwise.lab.validation.servers.postgres import DebianPostgres

pytestmark = [
    needs_root,
    pytest.mark.skipif(missing_package("postgres") is not None, reason="PostgreSQL is not installed"),
]


def _owned_by(uid: int) -> set[str]:
    """What an account has in shared memory, while its servers make and remove files."""
    files = set[str]()
    for path in Path("/dev/shm").glob("PostgreSQL.*"):
        with contextlib.suppress(FileNotFoundError):
            files |= {str(path)} if path.stat().st_uid == uid else set()
    lines = Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]
    return files | {line.split()[1] for line in lines if int(line.split()[9]) == uid}


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


_SERVER = """
import time
from tierwise.lab.validation.servers.postgres import DebianPostgres
server = DebianPostgres({})
server.data = server.own_directory(server.home, "data")
server.make_empty()
server.start()
print(" ".join(map(str, server.pids())), flush=True)
time.sleep(1000)
"""
_INITDB = """
from tierwise.lab.validation.servers.postgres import DebianPostgres
server = DebianPostgres({})
server.data = server.own_directory(server.home, "data")
server.make_empty()
"""


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


def test_a_live_servers_shared_memory_stays(run_dir: Path) -> None:
    server = DebianPostgres({})
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


def test_shared_memory_of_a_killed_initdb_goes(run_dir: Path) -> None:
    """Its children, whose pids nobody notes, are killed together with it and its owner."""
    account = users.server_user()
    assert account is not None
    before = _owned_by(account.uid)
    with subprocess.Popen([sys.executable, "-c", _INITDB]) as owner:
        try:
            deadline = time.monotonic() + 60
            while len(_owned_by(account.uid) - before) < 2:
                assert time.monotonic() < deadline and owner.poll() is None
        finally:
            owner.kill()
            for entry in ledger.entries("process"):
                _kill(processes._live_processes(entry))
    clean()
    assert not _owned_by(account.uid) - before
