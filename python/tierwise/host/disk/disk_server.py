"""The process that serves one emulated disk, and commands over its socket: a JSON object a line each way.

After a crash, the process is found by the configuration's path on its command line.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.host import cgroups, ledger, processes, programs, python_process
from tierwise.model.errors import TierwiseError

_PATIENCE_S = 30


def send_command(control_socket: Path, command: str, **arguments: Any) -> dict[str, Any]:
    """Send one command and give the answer."""
    request = json.dumps({"do": command, **arguments}) + "\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(str(control_socket))
            connection.sendall(request.encode())
            line = connection.makefile().readline()
    except OSError as error:
        raise TierwiseError(f"disk server at {control_socket}: {error}", "run tierwise clean") from error
    if not line:
        raise TierwiseError(f"disk server at {control_socket} ended", "run tierwise clean")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise TierwiseError(f"disk server refuses {command}: {answer['error']}", "report this as a defect")
    return answer


_MODULE = "tierwise.host.disk.disk_server"
_STARTS_WITHIN_S = 60
"""Long enough to precondition a large device."""


def spawn_disk_server(config: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start the server of a configuration, in its own session and without the caller's open files.

    It stays root, which FUSE needs. The entry of its disk must exist: undoing it removes the server's control
    groups.
    """
    cgroups.make_disk_server_cgroups(config.parent.name)
    return programs.spawn_tierwise_process(python_process.own_python(_MODULE, [config]), log)


def wait_for_disk_server(server: subprocess.Popen[bytes], control_socket: Path, log: Path, what: str) -> None:
    """Wait until a just-started server accepts commands."""
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while not _listens(control_socket):
        if server.poll() is not None:
            said = log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
            raise TierwiseError(f"{what}: {said[-1]}", "see tierwise doctor")
        if time.monotonic() > deadline:
            raise TierwiseError(f"{what}: its server does not start", "see tierwise doctor")
        time.sleep(0.005)


def _listens(control_socket: Path) -> bool:
    """Whether a process listens on the socket; the file appears a moment earlier."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(control_socket))
    except OSError:
        return False
    return True


def disk_server_pids(config: Path) -> list[int]:
    """Pids of the live servers of a configuration: one, none, or one started but not yet in the ledger."""
    wanted = [_MODULE.encode(), os.fsencode(config)]
    pids = [int(process.name) for process in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if _arguments(pid)[-2:] == wanted and ledger.ProcessIdentity.of(pid)]


def _arguments(pid: int) -> list[bytes]:
    """Command line of a process that the caller started; empty for other users' processes."""
    try:
        if processes.real_user(pid) != os.geteuid():
            return []
        return Path(f"/proc/{pid}/cmdline").read_bytes().removesuffix(b"\0").split(b"\0")
    except OSError:
        return []


def main() -> None:
    """Serve until the disk is unmounted; an error is the last line of the log."""
    config = Path(sys.argv[1])
    # Python's own handler would only run after the disk is unmounted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    cgroups.enter_disk_server_cgroups(config.parent.name)
    try:
        _core.serve_disk(config.read_text(encoding="utf-8"))
    except RuntimeError as error:
        sys.exit(str(error))
