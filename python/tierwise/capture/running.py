"""Records a running database for a time and leaves it unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise.capture.client_programs import ServersTalkedTo
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.rules import first_process_of
from tierwise.capture.schedule import Schedule
from tierwise.capture.session import Session
from tierwise.capture.target import Target
from tierwise.host import ledger, priority
from tierwise.model.progress import ProgressCallback


@dataclass(frozen=True)
class Enough:
    """Condition for ending a recording before its longest time.

    Attributes:
        is_usable: judges the recording so far, in a directory.
        longest_s: the recording ends after this time in any case.
    """

    is_usable: Callable[[Path], bool]
    longest_s: float


def record_running(
    target: Target,
    out: Path,
    schedule: Schedule,
    progress: ProgressCallback,
    counters: EngineCounters | None = None,
    enough: Enough | None = None,
) -> dict[str, Any]:
    """Record by the schedule; Ctrl-C ends the recording early, and recorded data is kept.

    Args:
        target: the recorded processes.
        out: directory of the recording, to be made or empty.
        schedule: when events are taken.
        progress: receives progress messages.
        counters: of the engine itself.
        enough: repeats the schedule's time until this condition holds.

    Returns:
        The recording's description.

    Raises:
        TierwiseError: if nothing can be recorded, the process is a client, or the directory is not empty.
    """
    talked_to = ServersTalkedTo(target.processes)
    with Session(target, out, schedule, progress, counters) as session:
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


_WINDOW_S = 60.0
_LEAST_WINDOW_S = 1.0


def _is_enough(session: Session, enough: Enough, beside: Path, progress: ProgressCallback) -> bool:
    """Judge the recording so far, at low priority; true if no more can be recorded."""
    if not session.alive or session.full or enough.longest_s - session.elapsed_s < _LEAST_WINDOW_S:
        return True
    progress(f"judging what {session.elapsed_s:.0f} s gave")
    with ledger.directory("tierwise-judged", parent=beside) as directory, priority.lowered():
        session.snapshot(directory / "recording")
        return enough.is_usable(directory / "recording")
