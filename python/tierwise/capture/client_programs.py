"""Programs that are clients of a server: a recording of one shows nothing of its database."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tierwise import _core
from tierwise.capture.rules import all_servers, program_of
from tierwise.model.errors import TierwiseError
from tierwise.recording import remove_recording
from tierwise.recording.breakdown import break_down

_REPLICA = "replica"
"""A server that is a client of another one has files of its own."""
_WRAPPERS = frozenset(
    (
        *("sh", "bash", "dash", "ash", "zsh", "ksh", "env", "time", "timeout", "nohup", "setsid", "stdbuf"),
        *("sudo", "doas", "su", "runuser", "setpriv", "nice", "ionice", "chrt", "taskset", "numactl"),
        *("strace", "perf", "systemd-run", "cgexec", "unshare", "nsenter", "chroot"),
    )
)
"""Programs that start the command that follows them."""
_FIRST_LOOK_S, _LONGEST_WAIT_S = 0.2, 30.0


def refuse_command(command: Sequence[str], out: Path) -> None:
    """Refuse a command that is a client by its name, before it runs.

    Raises:
        TierwiseError: naming the servers that run here.
    """
    if _is_client(name := _program_in(command)):
        raise _no_database(f"{name} is a client", out, all_servers())


def refuse_process(pid: int, program: str) -> None:
    """Refuse a running client by its name.

    Raises:
        TierwiseError: naming its server.
    """
    if _is_client(program):
        servers, _ = _core.servers_of([pid])
        raise _no_database(f"--pid: process {pid} ({program}) is a client", Path("DIR"), servers)


def _is_client(name: str) -> bool:
    return _core.client_kind(name) not in (None, _REPLICA)


def _program_in(command: Sequence[str]) -> str:
    """Name of the program that a command starts, also by way of others; empty if it is not said."""
    option = wrapped = False
    for word in command:
        name = Path(word).name
        if _is_client(name):
            return name
        if option and wrapped and " " in word:  # sh -c "psql …"
            return _program_in(_words(word))
        if name in _WRAPPERS:
            wrapped, option = True, False
        elif word.startswith("-"):
            option = True
        elif wrapped and (option or "=" in word or word[:1].isdigit()):
            option = False
        else:
            return name
    return ""


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    return words[words[0] == "exec" :] if words else []


def _no_database(what: str, out: Path, servers: Sequence[int]) -> TierwiseError:
    if not servers:
        return TierwiseError(
            f"{what}: a recording of it shows nothing of its server's files, and no server that tierwise "
            "knows runs here",
            "record on the server's host, with --pid of the server",
        )
    choice = str(servers[0]) if len(servers) == 1 else "PID"
    return TierwiseError(
        f"{what}: a recording of it shows nothing of its server's files. Servers here: "
        f"{_core.servers_listed(servers)}",
        f"record the server while the client runs: tierwise record -o {out} --pid {choice}",
    )


class ServersTalkedTo:
    """Servers that the processes of a command were connected to; looked for on a thread, ever less often."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        """Prepare; :meth:`look_until` looks."""
        self._processes = processes
        self.pids: set[int] = set()
        self.elsewhere = False
        self.programs: set[str] = set()
        """Known clients among the processes."""

    def look_until(self, ended: threading.Event) -> None:
        """Look until the command has ended, or a server on this host was found."""
        wait_s = _FIRST_LOOK_S
        while not ended.wait(wait_s) and not self.pids:
            self.look()
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def look(self) -> None:
        """Look once."""
        processes = self._processes()
        self.programs.update(name for name in map(program_of, processes) if _is_client(name))
        pids, elsewhere = _core.servers_of(processes)
        self.pids.update(pids)
        self.elsewhere |= elsewhere

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.pids or self.elsewhere or self.programs)

    def refuse(self, name: str, out: Path) -> None:
        """Refuse a program that talked to a server and opened no database itself, as an application may.

        Args:
            name: of the program.
            out: its recording, which is removed.

        Raises:
            TierwiseError: naming the servers.
        """
        if not self.any or any(row.role is not None for row in break_down(out).roles):
            return
        remove_recording(out)
        clients = f" by {', '.join(sorted(self.programs))}" if self.programs else ""
        what = f"{name} opened no file of a database and talked to a server{clients}"
        raise _no_database(what, out, sorted(self.pids) or all_servers())
