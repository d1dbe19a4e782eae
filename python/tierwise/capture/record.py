"""One recording: attaches, takes bursts, decodes, describes, detaches; of a command or a running database."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from tierwise import _core
from tierwise._core import Rules
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.postgres_names import RelationNames, read_names_as_server_user
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import (
    ConnectedServers,
    RecordingTarget,
    first_process_of,
    refuse_client_command,
    rules_of_program,
    rules_with_roles,
)
from tierwise.host import cpu, ledger, processes
from tierwise.host.cpu import lowered_priority
from tierwise.host.disk.partitions import emulated_partitions
from tierwise.host.interrupts import deferred_interrupts
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.recording import claimed_folder, discard_recording
from tierwise.recording.buffer_content import write_buffer

_BUFFER_MB = 16


class RecordingSession:
    """A recording in progress, until :meth:`finish`; as a context manager it always detaches."""

    def __init__(
        self,
        target: RecordingTarget,
        out: Path,
        schedule: BurstSchedule,
        progress: ProgressCallback,
        dsn: Dsn | None = None,
    ) -> None:
        """Attach; nothing is recorded yet.

        Args:
            out: directory of the recording, to be made or empty.
            dsn: of the engine's own counters, which are read at the start and the end of each window.
        """
        self._target, self._schedule, self._say, self._out = target, schedule, progress, out
        self._counters = None if dsn is None else EngineCounters.connect(dsn, target)
        self._names = RelationNames([], [])
        self._finished = False
        self.elapsed_s = 0.0
        """Total length of all windows, including the time between bursts."""
        with ExitStack() as undo:
            undo.enter_context(claimed_folder(out))
            undo.callback(self._discard_unfinished)
            self._about = _initial_metadata(target)
            spool = undo.enter_context(ledger.make_directory("tierwise-spool", parent=out.parent))
            options = json.dumps(self._options(spool))
            self._recorder = _core.Recorder(options, target.rules, target.role_of)
            undo.callback(self._recorder.close)
            self._undo = undo.pop_all()

    def run(self, begun: Callable[[], None] = lambda: None, seconds: float | None = None) -> None:
        """Take bursts by the schedule until its time is over, :meth:`stop` is called, or the target ends.

        Further calls record further windows of the same recording.

        Args:
            begun: called when the time starts to count: with a duty of 1, when events are recorded.
            seconds: length of the window, instead of the schedule's.
        """
        if self._counters is not None:
            self._counters.begin()
        began_s = time.monotonic()
        try:
            self._recorder.run(self._target.processes, self._target.clients, begun, self._say, seconds)
        finally:
            self.elapsed_s += time.monotonic() - began_s
            if self._counters is not None:
                self._counters.end()

    def begin_burst(self) -> None:
        """Record events from now on, of all current processes of the target."""
        if self._target.clients is not None:
            self._recorder.set_clients(self._target.clients())
        self._recorder.begin(self._target.processes())

    def end_burst(self) -> None:
        """Record no more events until the next burst."""
        events = self._recorder.end(self._target.processes())
        self._say(f"recording: {numbers.counted_noun(events, 'event')} in the last burst")

    def stop(self) -> None:
        """End the current burst and take no more; may be called from any thread."""
        self._recorder.stop()

    def finish(self, transactions: int | None = None, elapsed_s: float | None = None) -> dict[str, Any]:
        """Detach, decode the remaining bursts, write the recording; gives its description.

        Args:
            transactions: number executed in the time of the recording, if known.
            elapsed_s: that time; the total of all windows when left out.
        """
        self._say("decoding")
        if self._target.names_from_files:
            self._names = self._named_from_files()
        if self._counters is not None:
            self._counters.read_relations()
            self._counters.read_buffer()
            if self._counters.buffer is not None:
                write_buffer(self._out, self._counters.buffer)
        counted = self._summary(transactions, self.elapsed_s if elapsed_s is None else elapsed_s)
        made: dict[str, Any] = json.loads(self._recorder.finish(json.dumps(counted)))
        self._finished = True
        return made

    def snapshot(self, directory: Path) -> None:
        """Write the data so far as a separate recording; call between two windows."""
        self._recorder.snapshot(json.dumps(self._summary(None, self.elapsed_s)), directory)

    def _summary(self, transactions: int | None, elapsed_s: float) -> dict[str, Any]:
        """The recording's description, without the facts from the bursts."""
        about = self._about | {"duration_s": elapsed_s, "transactions": transactions}
        about["engine"] = self._target.engine or _core.engine_of_processes(
            self._target.processes(), self._target.rules
        )
        if self._counters is None:
            warnings = [*about["warnings"], *self._names.warnings]
            return about | {"relations": self._names.relations, "warnings": warnings}
        return about | {
            "engine_version": self._counters.version or about["engine_version"],
            "settings": {**about["settings"], **self._counters.settings},
            "counters": self._counters.counts,
            "relations": self._counters.relations,
            "transactions": self._counters.transactions,
            "warnings": [*about["warnings"], *self._counters.warnings],
        }

    def __enter__(self) -> Self:
        """Give the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Detach; keep only the recording."""
        with deferred_interrupts():
            self._undo.close()

    def _options(self, spool: Path) -> dict[str, Any]:
        target = self._target
        return {
            "first_pid": target.pid,
            "pids": target.processes(),
            "root": str(target.root),
            "mounts_of": None if target.root == Path("/") else target.pid,
            "emulated": emulated_partitions(),
            "disk_server_pids": None if target.disk_servers is None else target.disk_servers(),
            "buffer_mb": _BUFFER_MB,
            "spool_dir": str(spool),
            "directory": str(self._out),
            "schedule": asdict(self._schedule),
        }

    def _named_from_files(self) -> RelationNames:
        """The names of tables; where the files give none, the recording says so."""
        try:
            return read_names_as_server_user(self._target)
        except TierwiseError as error:
            return RelationNames([], [f"the names of tables and indexes are not known: {error.message}"])

    def _discard_unfinished(self) -> None:
        """Remove a directory without ``about.json``: it is not a recording and would block the next one."""
        if not self._finished:
            discard_recording(self._out)

    @property
    def full(self) -> bool:
        """Whether the recording has reached its limit: no further burst is taken."""
        return self._recorder.full()

    @property
    def alive(self) -> bool:
        """Whether one of the target's initial processes still runs."""
        return self._recorder.alive()


def _initial_metadata(target: RecordingTarget) -> dict[str, Any]:
    """The recording's description as far as it is known when it begins; the recorder adds its results."""
    return {
        "format": "tierwise recording",
        "version": 1,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "tierwise": metadata.version("tierwise"),
        "engine_version": target.version,
        "settings": dict(target.settings),
        "machine": json.loads(_core.describe_machine(next(iter(target.processes()), 0))),
        "bursts": [],
        "devices": [],
        "losses": {"recorded_events": 0, "lost_events": 0},
        "cost": None,
        "foreign_cpu_share": 0.0,
        "checks": [],
        "warnings": [
            *target.rules.warnings(target.role_of is None),
            *(_core.server_warnings(target.pid, target.rules, target.root) if target.pid else []),
        ],
    }


_STANDARD_ERROR = 2
_WINDOW_S = 60.0
_LEAST_WINDOW_S = 1.0


@dataclass(frozen=True)
class StopCondition:
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
    schedule: BurstSchedule,
    progress: ProgressCallback,
    dsn: Dsn | None = None,
    *,
    roles: Sequence[str] = (),
) -> dict[str, Any]:
    """Start a command and record it with its children, until it ends or the schedule's time is over.

    The command is stopped until the recorder is attached. Its output goes to standard error. After the
    schedule's time it runs on to its end. A signal that ends tierwise ends it too.

    Args:
        rules: of its files' roles; by default those of its program.
        out: directory of the recording, to be made or empty.
        dsn: of the engine's own counters, if they are to be read.
        roles: roles of files that go before the rules, as ``PATH=ROLE``.
    """
    refuse_client_command(command, out)
    rules = rules_with_roles(rules or rules_of_program(Path(command[0]).name, command[0]), roles)
    argv = ["/bin/sh", "-c", processes.STOP_FIRST, "sh", *command]
    with open(_STANDARD_ERROR, "wb", closefd=False) as output:
        process = processes.start("recorded", argv, cwd=Path.cwd(), log=output)
    try:
        process.await_stop("the command")
        target = RecordingTarget(lambda: sorted(cpu.process_tree(process.pid)), rules)
        talked_to, ended = ConnectedServers(target.processes), threading.Event()
        with RecordingSession(target, out, schedule, progress, dsn) as session:
            threading.Thread(target=_stop_with, args=(process, session), daemon=True).start()
            looking = threading.Thread(target=talked_to.look_until, args=(ended,), daemon=True)
            looking.start()
            try:
                session.run(lambda: os.kill(process.pid, signal.SIGCONT))
            finally:
                ended.set()
                looking.join()
            summary = session.finish()
        talked_to.refuse(command[0], out)
        status = process.wait()
    except BaseException:
        process.kill()
        raise
    if status != 0:
        ended_by = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise TierwiseError(
            f"{command[0]} {ended_by}", f"see what it wrote above; {out} is the recording until then"
        )
    return summary


def _stop_with(process: processes.Process, session: RecordingSession) -> None:
    process.popen.wait()
    session.stop()


def record_running_database(
    target: RecordingTarget,
    out: Path,
    schedule: BurstSchedule,
    progress: ProgressCallback,
    dsn: Dsn | None = None,
    enough: StopCondition | None = None,
) -> dict[str, Any]:
    """Record by the schedule; Ctrl-C ends the recording early, and recorded data is kept.

    Returns:
        The recording's description.

    Raises:
        TierwiseError: if nothing can be recorded, the process is a client, or the directory is not empty.
    """
    talked_to = ConnectedServers(target.processes)
    with RecordingSession(target, out, schedule, progress, dsn) as session:
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
        summary = session.finish()
    if not is_server:
        talked_to.refuse(f"process {pids[0]}" if pids else "the process", out)
    return summary


def _is_enough(
    session: RecordingSession, enough: StopCondition, beside: Path, progress: ProgressCallback
) -> bool:
    """Judge the recording so far, at low priority; true if no more can be recorded."""
    if not session.alive or session.full or enough.longest_s - session.elapsed_s < _LEAST_WINDOW_S:
        return True
    progress(f"judging what {session.elapsed_s:.0f} s gave")
    with ledger.make_directory("tierwise-judged", parent=beside) as directory, lowered_priority():
        session.snapshot(directory / "recording")
        return enough.is_usable(directory / "recording")
