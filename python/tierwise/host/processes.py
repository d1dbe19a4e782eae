"""Processes that tierwise starts: finds and ends each with all its descendants, also after a crash.

As root, each process has its own control group, which its children cannot leave. Without control groups,
descendants are found by parent, by session, and by a token in their environment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tierwise.host import cgroups, cpu, ledger, shared_memory
from tierwise.host.users import ServerUser, existing_server_user
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import open_output_file

TOKEN = "TIERWISE_PROCESS"
"""Environment variable with the token of a ledger entry."""

_AFTER_A_LINE = 'read -r _ && exec "$@" </dev/null'
"""Shell script: wait for a line on standard input, then exec the arguments; without one, end."""

STOP_FIRST = 'kill -STOP $$; exec "$@"'
"""Shell script: stop until somebody lets the process go on, then exec the arguments."""

_POLL_S = 0.002
_GONE_AFTER_S = 5.0


@dataclass
class Process:
    """A process that :func:`start` started, with all its descendants."""

    entry: ledger.LedgerEntry
    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Process id; also the id of its session and process group."""
        return self.popen.pid

    @property
    def running(self) -> bool:
        """Whether the process itself (not its children) still runs."""
        return self.popen.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself; no error if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def await_stop(self, what: str) -> None:
        """Wait until the process has stopped itself, as :data:`STOP_FIRST` does."""
        while self.running:
            fields = cpu.proc_stat_fields(Path(f"/proc/{self.pid}"))
            if fields is not None and fields[0] == "T":
                return
            time.sleep(_POLL_S)
        raise TierwiseError(f"{what} ended before it began", "see that /bin/sh can be run")

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the process to end by itself and forget it; give its exit status.

        Raises:
            subprocess.TimeoutExpired: if it still runs after ``timeout_s``; it then stays in the ledger.
        """
        status = self.popen.wait(timeout_s)
        self.kill()
        return status

    def wait_or_kill(self, timeout_s: float) -> bool:
        """Wait for the process to exit, then kill it; gives whether it exited by itself.

        An interrupt kills it at once: its caller may know it no longer.
        """
        try:
            self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        except BaseException:
            self.kill()
            raise
        return True

    def kill(self) -> None:
        """End the process and all its descendants with SIGKILL, and forget it.

        Raises:
            TierwiseError: if another process keeps it from being gone.
        """
        end(self.entry)
        try:
            self.popen.wait(_GONE_AFTER_S)
        except subprocess.TimeoutExpired:
            raise TierwiseError(
                f"process {self.entry.name}: pid {self.pid} has ended, and another process traces it",
                f"end the process that /proc/{self.pid}/status names as TracerPid",
            ) from None


def start(
    name: str,
    argv: Sequence[str | Path],
    *,
    user: ServerUser | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
    descriptors: Sequence[int] = (),
) -> Process:
    """Start a process in its own session; enter it in the ledger first.

    Programs of databases and their clients are started by :mod:`.programs` alone.

    Args:
        name: name for messages; need not be unique.
        user: run as this account (with its group and no supplementary groups); only for root.
        env: the whole environment; the caller's when left out.
        log: path of a file for both outputs, appended to and never through a link, or an open file; output
            is discarded when left out.
        errors: an open file for standard error alone.
    """
    program = shutil.which(str(argv[0]))
    if program is None:
        raise TierwiseError(f"{argv[0]} is not a program", "install it, or name its whole path")
    unique = f"{name}-{secrets.token_hex(4)}"
    entry = ledger.add("process", unique)
    started: dict[str, Any] = {
        "cwd": cwd,
        "env": {**(os.environ if env is None else env), TOKEN: unique},
        "user": user,
        "errors": errors,
        "descriptors": descriptors,
    }
    try:
        with _output(log) as output:
            popen = _spawn_in_cgroups(unique, [program, *map(str, argv[1:])], output, started)
        began = ledger.ProcessIdentity.of(popen.pid)
        return Process(
            entry.update(pid=popen.pid, start_ticks=None if began is None else began.start_ticks), popen
        )
    except (OSError, subprocess.SubprocessError) as error:
        end(entry)
        raise TierwiseError(f"cannot run {argv[0]}: {error}", "check user and directory") from error
    except BaseException:
        # Interrupted before the caller gets the process: end it here.
        end(entry)
        raise


def _spawn_in_cgroups(
    group_name: str, argv: Sequence[str], output: IO[bytes], started: dict[str, Any]
) -> subprocess.Popen[bytes]:
    """Start a process that runs nothing until it is in its control groups.

    The caller moves it there: whoever has an open descriptor of a group of root's can move any process of the
    machine into it, and other processes of the same account could take one from the process.
    """
    cgroups.make_process_cgroup(group_name)
    gate, opener = os.pipe()
    with os.fdopen(opener, "wb", 0) as line:
        try:
            popen = spawn_untracked(
                ["/bin/sh", "-c", _AFTER_A_LINE, "sh", *argv], output, stdin=gate, **started
            )
        finally:
            os.close(gate)
        cgroups.enter_process_cgroup(group_name, popen.pid)
        cgroups.enter_block_io_cgroup(group_name, popen.pid)
        with contextlib.suppress(BrokenPipeError):  # it was killed meanwhile
            line.write(b"\n")
    return popen


def spawn_untracked(
    argv: Sequence[str],
    output: IO[bytes],
    *,
    user: ServerUser | None,
    env: Mapping[str, str],
    cwd: Path | None,
    stdin: int = subprocess.DEVNULL,
    errors: IO[bytes] | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process in its own session, outside of the ledger and of control groups."""
    identity: dict[str, Any] = (
        {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}
    )
    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=output,
        stderr=errors or subprocess.STDOUT,
        start_new_session=True,
        env=env,
        cwd=cwd,
        pass_fds=descriptors,
        **identity,
    )


def _output(log: Path | IO[bytes] | None) -> contextlib.AbstractContextManager[IO[bytes]]:
    if log is None:
        return Path(os.devnull).open("wb")
    return open_output_file(log, "append") if isinstance(log, Path) else contextlib.nullcontext(log)


def end(entry: ledger.LedgerEntry, timeout_s: float = 60) -> None:
    """End every process of a ledger entry with SIGKILL, wait until they are gone, remove the entry.

    Raises:
        TierwiseError: if a process survives ``timeout_s`` (blocked in the kernel); the entry stays.
    """
    deadline = time.monotonic() + timeout_s
    ended = {entry.facts["pid"]} if "pid" in entry.facts else set()
    while members := _live_processes(entry):
        ended.update(members)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            listed = ", ".join(map(str, members))
            raise TierwiseError(f"process {entry.name}: pid {listed} does not end", "see what blocks it")
        time.sleep(0.005)
    shared_memory.remove_shared_memory(shared_memory.shared_memory_of_processes(ended, _accounts()))
    if "pid" in entry.facts:
        reap_process(entry.facts["pid"])
    cgroups.remove_process_cgroup(entry.name)
    entry.remove()


def reap_process(pid: int) -> None:
    """Reap a process that has ended, if the caller started it: its control group can then be removed."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _live_processes(entry: ledger.LedgerEntry) -> list[int]:
    """Live processes of an entry: itself, its control group, those with its token, and their descendants."""
    table = _process_table()
    pids = set(cgroups.process_cgroup_members(entry.name)) & table.keys()
    if entry.facts.get("start_ticks") is not None:
        began = ledger.ProcessIdentity(entry.facts["pid"], entry.facts["start_ticks"], entry.owner.boot_id)
        pids |= {began.pid} if began.alive and began.pid in table else set()
    pids |= {pid for pid in table if _has_token(pid, entry.name)}
    while grown := {pid for pid in table.keys() - pids if pids & {*table[pid]}}:
        pids |= grown
    return sorted(pids)


def _has_token(pid: int, token: str) -> bool:
    """Whether a process has the token, and another user of the machine has not planted it in his own."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        return f"{TOKEN}={token}".encode() in environment.split(b"\0") and real_user(pid) in _accounts()
    except OSError:
        return False


def real_user(pid: int) -> int:
    """Who started a process; a program with the set-user-ID bit runs as somebody else."""
    return int(cpu.proc_status_text(Path(f"/proc/{pid}")).partition("\nUid:")[2].split()[0])


def _accounts() -> set[int]:
    """Users that tierwise's processes run as: the caller, and as root the servers' account too."""
    return {os.geteuid(), *(() if (account := existing_server_user()) is None else (account.uid,))}


def _process_table() -> dict[int, tuple[int, int]]:
    """Parent and session of every live process except this one."""
    return {
        pid: (int(fields[1]), int(fields[3]))
        for pid, fields in cpu.all_stat_fields()
        if fields[0] not in "ZX" and pid != os.getpid()
    }


_MOST_LOG_BYTES = 8 << 20
"""Read of a log; the rest stays on disk."""


def read_log_end(path: Path, start_bytes: int = 0) -> str:
    """A log from byte ``start_bytes`` on, or its last 8 MiB if there is more; empty if there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(start_bytes, file.seek(0, os.SEEK_END) - _MOST_LOG_BYTES))
        return file.read(_MOST_LOG_BYTES).decode("utf-8", "replace")
