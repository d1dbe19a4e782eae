"""What the kernel tells of processes, CPU time of process trees, and the users that servers run as."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.engine_contract import open_directory
from tierwise.capture.target import program_of_process
from tierwise.host.cpu import process_cpu_s, process_tree_cpu_s
from tierwise.host.ledger import ProcessIdentity
from tierwise.host.mounts import _users
from tierwise.host.processes import _process_table
from tierwise.host.users import ACCOUNT, ServerUser, server_user, unreachable_part

TICKS_S = 0.05
"""Five of the ticks in which the kernel tells times of processes."""

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
PARENT = """
import resource, subprocess, sys
burn = {burn!r}
subprocess.run([sys.executable, "-c", burn.format(seconds=0.4)])
live = subprocess.Popen([sys.executable, "-c", burn.format(seconds=0.3) + "print(flush=True); input()"],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
live.stdout.readline()
ended = resource.getrusage(resource.RUSAGE_CHILDREN)
print(live.pid, ended.ru_utime + ended.ru_stime, flush=True)
input()
live.communicate(b"x")
print("reaped", flush=True)
input()
"""


def test_live_and_ended_children_count_once() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(burn=BURN)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin is not None and parent.stdout is not None
    try:
        fields = parent.stdout.readline().split()
        child_pid, ended_s = int(fields[0]), float(fields[1])
        own_s, child_s, with_live_s = (
            process_cpu_s(parent.pid),
            process_cpu_s(child_pid),
            process_tree_cpu_s(parent.pid),
        )
        assert own_s is not None and child_s is not None and with_live_s is not None
        assert child_s >= 0.29
        assert ended_s >= 0.4
        assert with_live_s == pytest.approx(own_s + child_s + ended_s, abs=TICKS_S)
        parent.stdin.write(b"x\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == b"reaped\n"
        reaped_s = process_tree_cpu_s(parent.pid)
        assert reaped_s is not None
        assert with_live_s - TICKS_S <= reaped_s < with_live_s + 0.3, "neither lost nor counted twice"
    finally:
        parent.kill()
        parent.wait()
    assert process_tree_cpu_s(parent.pid) is None
    assert process_cpu_s(parent.pid) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make an account")
def test_root_has_an_account_of_tierwises_own() -> None:
    chosen = server_user()
    assert chosen is not None and chosen.name == ACCOUNT and chosen.uid != 0
    assert server_user() == chosen


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "open_"),
    [
        (0o700, 0, 0, True),
        (0o700, 1, 0, False),
        (0o710, 1, 0, True),
        (0o701, 1, 1, True),
        (0o010, 0, 0, False),
    ],
)
def test_reach_goes_by_owner_group_and_mode(mode: int, uid: int, gid: int, open_: bool) -> None:
    """``uid`` and ``gid`` are 0 for the owner's own and 1 for another's."""
    with open_directory() as path:
        inner = path / "inner"
        inner.mkdir()
        path.chmod(mode)
        status = path.stat()
        user = ServerUser("someone", status.st_uid + uid, status.st_gid + gid)
        inner.chmod(0o755)
        assert unreachable_part(inner, user) == (None if open_ else path)
        path.chmod(0o700)


def test_a_process_whose_name_is_cut_amid_a_character_is_read_like_any_other() -> None:
    renames = 'import ctypes; ctypes.CDLL(None).prctl(15, b"dump\\xc3"); print(flush=True); input()'
    process = subprocess.Popen([sys.executable, "-c", renames], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        name = program_of_process(process.pid)
        assert name == "dump\N{REPLACEMENT CHARACTER}"
        assert _users(lambda folder: folder.name == str(process.pid)) == {process.pid: name}
        assert _process_table()[process.pid][0] == os.getpid()
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None and identity.alive
    finally:
        process.communicate(b"\n")
