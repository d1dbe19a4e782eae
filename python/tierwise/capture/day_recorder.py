"""A day of short recordings: one in each period, in one folder, within limits of cost and size.

Each recording is complete on disk before the next one starts, so whatever ends the day keeps those before.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from math import isinf
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import DayPlan, FinishedRecording
from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import RecordingTarget, program_of_process
from tierwise.host import ledger
from tierwise.host.interrupts import deferred_interrupts
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.recording import make_recording_folder, remove_recording

_SEED = 1
_SAID_AGAIN = 1.1
"""A longer period is announced once it is this many times the one announced before."""


class DayRecorder:
    """Takes the recordings of a day."""

    def __init__(
        self,
        pid: int,
        find: Callable[[int], RecordingTarget],
        out: Path,
        plan: DayPlan,
        *,
        progress: ProgressCallback,
        note: Callable[[str], None],
        dsn: Dsn | None = None,
    ) -> None:
        """Make the folder.

        Args:
            pid: of the database's first process. It may be restarted meanwhile.
            find: gives the processes to record by the pid of the first.
            out: folder of the day, to be made or empty.
            note: receives one line for each recording, gap, restart and change of the schedule.
            dsn: of the engine's own counters, if they are to be read.
        """
        make_recording_folder(out)
        self._pid, self._find, self._out, self._plan = pid, find, out, plan
        self._identity, self._program, self._place = (
            ledger.ProcessIdentity.of(pid),
            program_of_process(pid),
            _user_and_directory_of(pid),
        )
        self._say, self._print, self._dsn = progress, note, dsn
        self._every_s = self._said_s = plan.every_s
        self._chance = random.Random(_SEED)
        self._over = False
        self._attempts = 0
        self.taken: list[FinishedRecording] = []

    def run(self) -> None:
        """Record until the day is over, a limit is reached, or Ctrl-C.

        Raises:
            TierwiseError: if the first recording cannot be taken; later failures become a line.
        """
        self._began_s = period_s = start_s = time.monotonic()
        while not self._over and start_s < self._began_s + self._plan.seconds:
            try:
                self._wait(start_s)
                with ExitStack() as whole:
                    self._take(whole)
            except KeyboardInterrupt:
                self._end("interrupted: the day ends")
            period_s = max(period_s + self._every_s, time.monotonic())
            # Recordings at fixed times would alias with periodic jobs.
            room_s = max(self._every_s - (self._plan.each.seconds or 0.0), 0.0)
            start_s = period_s + self._chance.uniform(0.0, room_s / 2)

    @property
    def elapsed_s(self) -> float:
        """Time since the first recording began."""
        return time.monotonic() - self._began_s

    def _wait(self, until_s: float) -> None:
        left_s = until_s - time.monotonic()
        if left_s > 0:
            self._say(f"next recording at {_clock(left_s)}")
            time.sleep(left_s)

    def _take(self, whole: ExitStack) -> None:
        """Take one recording; once it has its bursts, it is finished and noted before an interrupt counts."""
        self._attempts += 1
        cpu_s = time.process_time()
        out = self._out / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            self._follow_restart()
            recorded = self._recorded(out, whole)
        except TierwiseError as error:
            if self._attempts == 1:
                raise
            self._note(f"no recording: {error.message}")
            return
        if not recorded["bursts"]:
            remove_recording(out)
            self._note("no recording: it ended before its first burst")
            return
        size_bytes = sum(file.stat().st_size for file in out.iterdir())
        taken = FinishedRecording.of(recorded, size_bytes, time.process_time() - cpu_s)
        if self._plan.is_exceeded_by([*self.taken, taken]):
            remove_recording(out)
            self._end_for_size(size_bytes)
            return
        self.taken.append(taken)
        bursts = numbers.counted_noun(len(recorded["bursts"]), "burst")
        self._note(
            f"{out.name}: {recorded['duration_s']:.1f} s, {bursts}, "
            f"{recorded['losses']['recorded_events']:,} events, {recorded['losses']['lost_events']:,} lost, "
            f"{size_bytes / 1e6:.2f} MB"
        )
        if not self._over:
            self._thin_out()

    def _follow_restart(self) -> None:
        """After a restart, go on with the process that has its program, user and working directory."""
        if self._identity is not None and self._identity.alive:
            return
        pids = [
            pid
            for pid in _core.first_processes([self._program])
            if _user_and_directory_of(pid) == self._place
        ]
        if len(pids) != 1:
            raise TierwiseError(f"the database ({self._program}) does not run", "start it")
        self._pid, self._identity = pids[0], ledger.ProcessIdentity.of(pids[0])
        self._note(f"the database was restarted; it is now process {self._pid}")

    def _recorded(self, out: Path, whole: ExitStack) -> dict[str, Any]:
        target = self._find(self._pid)
        with RecordingSession(target, out, self._plan.each, self._say, self._dsn) as session:
            try:
                session.run()
            except KeyboardInterrupt:
                session.stop()
                self._end("interrupted: the day ends with this recording")
            whole.enter_context(deferred_interrupts())
            return session.finish()

    def _end_for_size(self, size_bytes: int) -> None:
        most = f"{self._plan.most_bytes / 1e6:,.0f} MB"
        if not self.taken:
            raise TierwiseError(
                f"one recording has {size_bytes / 1e6:,.1f} MB, and the day may have {most}",
                "record less each time, with a shorter --each or a smaller --duty",
            )
        self._end(f"the day ends here: with one more recording it would have more than {most}")

    def _thin_out(self) -> None:
        """Lengthen the period if the limits ask for it, or end the day if no further recording fits."""
        shortest_s, limit = self._plan.shortest_period(self.taken, self.elapsed_s)
        if isinf(shortest_s):
            self._end(f"the day ends here: {limit}")
            return
        self._every_s = max(self._plan.every_s, shortest_s)
        if self._every_s > _SAID_AGAIN * self._said_s:
            self._said_s = self._every_s
            self._note(f"from now on every {self._every_s:,.0f} s: {limit}")

    def _end(self, why: str) -> None:
        self._over = True
        self._note(why)

    def _note(self, line: str) -> None:
        self._print(f"{_clock()} {line}")


def _user_and_directory_of(pid: int) -> tuple[int, str] | None:
    """User and working directory of a process; ``None`` if it is gone."""
    process = Path(f"/proc/{pid}")
    try:
        return process.stat().st_uid, str((process / "cwd").readlink())
    except OSError:
        return None


def _clock(later_s: float = 0.0) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time.time() + later_s))
