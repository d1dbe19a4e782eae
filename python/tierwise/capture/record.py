"""Records a command from its first instruction to its end, or a running database for a time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise._core import Rules
from tierwise.capture.schedule import Schedule
from tierwise.capture.session import Session
from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import (
    ServersTalkedTo,
    Target,
    first_process_of,
    for_program,
    refuse_command,
    with_roles,
)
from tierwise.host import cpu, ledger, processes
from tierwise.host.cpu import lowered
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback

_STANDARD_ERROR = 2
_WINDOW_S = 60.0
_LEAST_WINDOW_S = 1.0


@dataclass(frozen=True)
class Enough:
    """Condition for ending a recording before its longest time.

    Attributes:
        is_usable: judges the recording so far, in a directory.
        longest_s: the recording ends after this time in any case.
    """

    is_usable: Callable[[Path], bool]
    longest_s: float


def record_command(
    command: Sequence[str],
    rules: Rules | None,
    out: Path,
    schedule: Schedule,
    progress: ProgressCallback,
    dsn: Dsn | None = None,
    *,
    roles: Sequence[str] = (),
) -> dict[str, Any]:
    """Start a command and record it with its children, until it ends or the schedule's time is over.

    The command is stopped until tracing is attached. Its output goes to standard error. After the schedule's
    time it runs on to its end. A signal that ends tierwise ends it too.

    Args:
        command: program and arguments.
        rules: of its files' roles; by default those of its program.
        out: directory of the recording, to be made or empty.
        schedule: when events are taken.
        progress: receives progress messages.
        dsn: of the engine's own counters, if they are to be read.
        roles: roles of files that go before the rules, as ``PATH=ROLE``.

    Raises:
        TierwiseError: if the command cannot be run, fails or is a client, or nothing can be recorded.
    """
    refuse_command(command, out)
    rules = with_roles(rules or for_program(Path(command[0]).name, command[0]), roles)
    argv = ["/bin/sh", "-c", processes.STOP_FIRST, "sh", *command]
    with open(_STANDARD_ERROR, "wb", closefd=False) as output:
        process = processes.start("recorded", argv, cwd=Path.cwd(), log=output)
    try:
        process.await_stop("the command")
        target = Target(lambda: sorted(cpu.tree(process.pid)), rules)
        talked_to, ended = ServersTalkedTo(target.processes), threading.Event()
        with Session(target, out, schedule, progress, dsn) as session:
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


def _stop_with(process: processes.Process, session: Session) -> None:
    process.popen.wait()
    session.stop()


def record_running(
    target: Target,
    out: Path,
    schedule: Schedule,
    progress: ProgressCallback,
    dsn: Dsn | None = None,
    enough: Enough | None = None,
) -> dict[str, Any]:
    """Record by the schedule; Ctrl-C ends the recording early, and recorded data is kept.

    Args:
        target: the recorded processes.
        out: directory of the recording, to be made or empty.
        schedule: when events are taken.
        progress: receives progress messages.
        dsn: of the engine's own counters, if they are to be read.
        enough: repeats the schedule's time until this condition holds.

    Returns:
        The recording's description.

    Raises:
        TierwiseError: if nothing can be recorded, the process is a client, or the directory is not empty.
    """
    talked_to = ServersTalkedTo(target.processes)
    with Session(target, out, schedule, progress, dsn) as session:
        try:
            session.run()
            while enough is not None and not _is_enough(session, enough, out.parent, progress):
                session.run(seconds=min(schedule.seconds or _WINDOW_S, enough.longest_s - session.elapsed_s))
        except KeyboardInterrupt:
            session.stop()
        pids = target.processes()
        is_server = pids and first_process_of(pids[0]) is not None
        if not is_server:
            talked_to.look()
        told = session.finish()
    if not is_server:
        talked_to.refuse(f"process {pids[0]}" if pids else "the process", out)
    return told


def _is_enough(session: Session, enough: Enough, beside: Path, progress: ProgressCallback) -> bool:
    """Judge the recording so far, at low priority; true if no more can be recorded."""
    if not session.alive or session.full or enough.longest_s - session.elapsed_s < _LEAST_WINDOW_S:
        return True
    progress(f"judging what {session.elapsed_s:.0f} s gave")
    with ledger.directory("tierwise-judged", parent=beside) as directory, lowered():
        session.snapshot(directory / "recording")
        return enough.is_usable(directory / "recording")
