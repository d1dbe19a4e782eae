"""A day of short recordings: one in each period, in one folder, within limits of cost and size.

Each recording is complete on disk before the next one starts, so whatever ends the day keeps those before.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isinf
from pathlib import Path
from typing import Any

from tierwise.capture.day_limits import Limits, Taken
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.schedule import Schedule
from tierwise.capture.server import Server
from tierwise.capture.session import Session
from tierwise.capture.target import Target
from tierwise.model.errors import TierwiseError
from tierwise.model.progress import ProgressCallback
from tierwise.recording import make_folder, remove_recording

_SEED = 1
_SAID_AGAIN = 1.1
"""A longer period is announced once it is this many times the one announced before."""


@dataclass(frozen=True)
class DayPlan:
    """When to record.

    Attributes:
        seconds: length of the day.
        every_s: length of a period, with one recording in each.
        each: schedule of one recording.
        limits: what the day may cost and how large it may become.
    """

    seconds: float
    every_s: float
    each: Schedule
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse periods that hold no recording, and recordings that hold no burst.

        Raises:
            TierwiseError: naming the option.
        """
        each_s = self.each.seconds or 0.0
        if not each_s < self.every_s <= self.seconds:
            raise TierwiseError(
                f"--every: {self.every_s:g} s does not lie between one recording ({each_s:g} s) and the "
                f"whole day ({self.seconds:g} s)",
                "write for example --duration 24h --every 10min --each 60s",
            )
        if each_s < self.each.burst_s / self.each.duty:
            raise TierwiseError(
                f"--each: a burst with its pause takes {self.each.burst_s / self.each.duty:g} s, and one "
                f"recording {each_s:g} s",
                "record longer, or with a shorter --burst or a greater --duty",
            )


class DayRecorder:
    """Takes the recordings of a day."""

    def __init__(
        self,
        server: Server,
        out: Path,
        plan: DayPlan,
        *,
        progress: ProgressCallback,
        note: Callable[[str], None],
        counters: Callable[[Target], EngineCounters | None] = lambda _: None,
    ) -> None:
        """Make the folder.

        Args:
            server: the database, which may be restarted meanwhile.
            out: folder of the day, to be made or empty.
            plan: when to record.
            progress: receives progress messages.
            note: receives one line for each recording, gap, restart and change of the schedule.
            counters: gives new counters of the engine itself for each recording.

        Raises:
            TierwiseError: if the folder is not empty.
        """
        make_folder(out)
        self._server, self._out, self._plan = server, out, plan
        self._say, self._note, self._counters = progress, note, counters
        self._every_s = self._said_s = plan.every_s
        self._chance = random.Random(_SEED)
        self._interrupted = False
        self._attempts = 0
        self.taken: list[Taken] = []

    def run(self) -> None:
        """Record until the day is over, a limit is reached, or Ctrl-C.

        Raises:
            TierwiseError: if the first recording cannot be taken; later failures become a line.
        """
        self._began_s = time.monotonic()
        period_s = start_s = self._began_s
        while not self._interrupted and start_s < self._began_s + self._plan.seconds:
            try:
                self._wait(start_s)
                if not self._take():
                    return
            except KeyboardInterrupt:
                self._note(f"{_clock()} interrupted: the day ends")
                return
            period_s = max(period_s + self._every_s, time.monotonic())
            start_s = period_s + self._random_delay_s()

    @property
    def elapsed_s(self) -> float:
        """Time since the first recording began."""
        return time.monotonic() - self._began_s

    def _random_delay_s(self) -> float:
        """Recordings at fixed times would alias with periodic jobs."""
        room_s = max(self._every_s - (self._plan.each.seconds or 0.0), 0.0)
        return self._chance.uniform(0.0, room_s / 2)

    def _wait(self, until_s: float) -> None:
        left_s = until_s - time.monotonic()
        if left_s > 0:
            self._say(f"next recording at {_clock(left_s)}")
            time.sleep(left_s)

    def _take(self) -> bool:
        """Take one recording; whether the day goes on."""
        self._attempts += 1
        cpu_s = time.process_time()
        out = self._out / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            if self._server.restarted():
                self._note(f"{_clock()} the database was restarted; it is now process {self._server.pid}")
            told = self._recorded(out)
        except TierwiseError as error:
            if self._attempts == 1:
                raise
            self._note(f"{_clock()} no recording: {error.message}")
            return True
        if not told["bursts"]:
            remove_recording(out)
            self._note(f"{_clock()} no recording: it ended before its first burst")
            return not self._interrupted
        one = Taken.of(out, told, time.process_time() - cpu_s)
        if self._plan.limits.exceeded_by([*self.taken, one]):
            remove_recording(out)
            return self._end_for_size(one)
        self.taken.append(one)
        self._note(f"{_clock()} {one.described}")
        return not self._interrupted and self._thin_out()

    def _recorded(self, out: Path) -> dict[str, Any]:
        target = self._server.target()
        with Session(target, out, self._plan.each, self._say, self._counters(target)) as session:
            try:
                session.run()
            except KeyboardInterrupt:
                self._interrupted = True
                session.stop()
                self._note(f"{_clock()} interrupted: the day ends with this recording")
            return session.finish()

    def _end_for_size(self, one: Taken) -> bool:
        most = f"{self._plan.limits.most_bytes / 1e6:,.0f} MB"
        if not self.taken:
            raise TierwiseError(
                f"one recording has {one.size_bytes / 1e6:,.1f} MB, and the day may have {most}",
                "record less each time, with a shorter --each or a smaller --duty",
            )
        self._note(f"{_clock()} the day ends here: with one more recording it would have more than {most}")
        return False

    def _thin_out(self) -> bool:
        """Lengthen the period if the limits ask for it; false if no further recording fits."""
        elapsed_s = self.elapsed_s
        needed = self._plan.limits.period(self.taken, elapsed_s, max(self._plan.seconds - elapsed_s, 0.0))
        if isinf(needed.seconds):
            self._note(f"{_clock()} the day ends here: {needed.because}")
            return False
        self._every_s = max(self._plan.every_s, needed.seconds)
        if self._every_s > _SAID_AGAIN * self._said_s:
            self._said_s = self._every_s
            self._note(f"{_clock()} from now on every {self._every_s:,.0f} s: {needed.because}")
        return True


def _clock(later_s: float = 0.0) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time.time() + later_s))
