"""The end of a process takes nothing with it that belongs to another user or another pid namespace."""

from __future__ import annotations

import ctypes
import os
import pwd
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.other_users import NAME, needs_root, run, running
from tierwise.host import cgroups, ledger, processes, programs, python_process
from tierwise.host.disk.disk_server import disk_server_pids
from tierwise.host.users import ServerUser
from tierwise.model.errors import TierwiseError

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


_AS_ROOT_BY_NAME = """
import time
open("/proc/self/comm", "w").write("\\rUid:\\t0\\t0")
print("named", flush=True)
time.sleep(1000)
"""


def test_a_process_does_not_tell_its_user_by_its_name(run_dir: Path) -> None:
    entry = ledger.add("process", "named-00000000")
    token = {"PATH": os.environ["PATH"], processes.TOKEN: entry.name}
    with running(_AS_ROOT_BY_NAME, env=token) as theirs:
        assert processes.real_user(theirs.pid) == other_user().uid
        processes.end(entry)
        assert theirs.poll() is None


def test_a_program_of_root_that_another_user_started_is_no_disk_server(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    code = f"import os, time; os.setresuid({other_user().uid}, 0, 0); print(flush=True); time.sleep(1000)"
    argv = [sys.executable, "-c", code, "tierwise.host.disk.disk_server", str(config)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as theirs:
        assert theirs.stdout is not None and theirs.stdout.readline()
        found = disk_server_pids(config)
        theirs.kill()
    assert found == []


_STEALING = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
print("ready", flush=True)
while True:
    for name in os.listdir("/proc"):
        try:
            if int(name) == os.getpid() or os.stat(f"/proc/{name}").st_uid != os.getuid():
                continue
            os.kill(int(name), signal.SIGSTOP)
            process = os.pidfd_open(int(name))
            stolen = libc.syscall(438, process, 0, 0)  # pidfd_getfd
            if stolen >= 0 and os.readlink(f"/proc/self/fd/{stolen}").endswith("cgroup.procs"):
                os.write(stolen, sys.argv[1].encode())
            os.kill(int(name), signal.SIGCONT)
            os.close(process)
            os.close(stolen)
        except (OSError, ValueError):
            pass
"""
_TRACING = """
import ctypes, sys, time
ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None)  # PTRACE_SEIZE
print("traces", flush=True)
time.sleep(1000)
"""


_LOOKING = """
import ctypes, sys
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None))
open(f"/proc/{sys.argv[1]}/environ").read()
"""


def other_user() -> ServerUser:
    account = pwd.getpwnam(NAME)
    return ServerUser(NAME, account.pw_uid, account.pw_gid)


def started_as_other_user() -> processes.Process:
    return processes.start("theirs", ["/bin/sleep", "1000"], user=other_user(), env={"PATH": "/bin"})


def test_a_user_cannot_trace_what_runs_as_him_for_root(
    run_dir: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_process, "_is_open", lambda *_: True)
    (log := open_path / "log").touch()
    code = "import os, time; print(os.geteuid(), flush=True); time.sleep(1000)"
    process = programs.start(
        "look", python_process.unprivileged_python("look", code, user=other_user()), log=log
    )
    try:
        while process.running and not log.read_text():
            time.sleep(0.01)
        assert log.read_text() == f"{other_user().uid}\n"
        status, output = run(_LOOKING, str(process.pid))
    finally:
        process.kill()
    assert status != 0 and output.startswith("-1\n") and "PermissionError" in output


def test_a_process_has_nothing_that_moves_others_into_its_control_group(run_dir: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as victim, running(_STEALING, str(victim.pid)):
        for _ in range(20):
            process = started_as_other_user()
            process.wait_or_kill(0.02)
        assert victim.poll() is None
        victim.kill()


def test_a_process_of_another_user_ends_without_control_groups(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_unified", lambda: None)
    process = started_as_other_user()
    ending = threading.Thread(target=process.kill, daemon=True)
    ending.start()
    ending.join(10)
    process.popen.kill()
    assert not ending.is_alive()


def test_a_process_that_its_user_traces_is_not_waited_for_for_ever(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GONE_AFTER_S", 0.5, raising=False)
    process, problems = started_as_other_user(), []

    def end() -> None:
        with pytest.raises(TierwiseError, match="another process traces it") as refused:
            process.kill()
        problems.append(refused.value.fix)

    with running(_TRACING, str(process.pid)):
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(20)
        ended = not ending.is_alive()
    process.popen.wait()
    cgroups.remove_process_cgroup(process.entry.name)
    assert ended and str(process.pid) in problems[0]
