"""The end of a process takes nothing with it that belongs to another user or another pid namespace."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.other_users import needs_root, run, running
from tierwise.host import ledger, processes

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
