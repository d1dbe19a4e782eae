"""Records a command from its first instruction to its end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tierwise._core import Rules
from tierwise.capture import client_programs
from tierwise.capture.client_programs import ServersTalkedTo
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.schedule import Schedule
from tierwise.capture.session import Session
from tierwise.capture.target import Target
from tierwise.host import cpu, processes
from tierwise.model.errors import TierwiseError
from tierwise.model.progress import ProgressCallback

_WAITS_FIRST = 'kill -STOP $$; exec "$@"'
_STANDARD_ERROR = 2
_POLL_S = 0.05


def record_command(
    command: Sequence[str],
    rules: Rules,
    out: Path,
    schedule: Schedule,
    progress: ProgressCallback,
    counters: Callable[[Target], EngineCounters | None] = lambda _: None,
) -> dict[str, Any]:
    """Start a command and record it with its children, until it ends or the schedule's time is over.

    The command is stopped until tracing is attached. Its output goes to standard error. After the schedule's
    time it runs on to its end. A signal that ends tierwise ends it too.

    Raises:
        TierwiseError: if the command cannot be run, fails or is a client, or nothing can be recorded.
    """
    client_programs.refuse_command(command, out)
    argv = ["/bin/sh", "-c", _WAITS_FIRST, "sh", *command]
    with open(_STANDARD_ERROR, "wb", closefd=False) as output:
        process = processes.start("recorded", argv, cwd=Path.cwd(), log=output)
    try:
        _await_stop(process)
        target = Target(lambda: sorted(cpu.tree(process.pid)), rules)
        talked_to, ended = ServersTalkedTo(target.processes), threading.Event()
        with Session(target, out, schedule, progress, counters(target)) as session:
            threading.Thread(target=_stop_with, args=(process, session), daemon=True).start()
            looking = threading.Thread(target=talked_to.look_until, args=(ended,), daemon=True)
            looking.start()
            try:
                session.run(lambda: os.kill(process.pid, signal.SIGCONT))
            finally:
                ended.set()
                looking.join()
            told = session.finish()
        talked_to.refuse(command[0], out)
        status = process.wait()
    except BaseException:
        process.kill()
        raise
    if status != 0:
        raise TierwiseError(f"{command[0]} ended with status {status}", "see what it wrote above")
    return told


def _await_stop(process: processes.Process) -> None:
    while process.running:
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "T":
            return
        threading.Event().wait(_POLL_S / 10)
    raise TierwiseError("the command ended before it began", "see that /bin/sh can be run")


def _stop_with(process: processes.Process, session: Session) -> None:
    while process.running:
        threading.Event().wait(_POLL_S)
    session.stop()
