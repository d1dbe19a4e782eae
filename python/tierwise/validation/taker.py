"""The recording of one run of a validation, attached in the same way as a user's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tierwise.capture import Schedule, Session, Target
from tierwise.studies.runner.recorded import RunRecording
from tierwise.validation.servers import Database
from tierwise.validation.servers.library import Library

_BURST_S = 0.5


class Taker:
    """Records one run: from :meth:`begin`, or from the start of a library's client, to :meth:`end`."""

    def __init__(
        self, database: Database, out: Path | None, schedule: Schedule, disk_servers: Callable[[], list[int]]
    ) -> None:
        """Attach nothing yet.

        Args:
            database: the recorded database.
            out: directory of the recording; ``None`` to record nothing.
            schedule: schedule of bursts.
            disk_servers: pids of emulated disks' servers; their CPU time counts as storage.
        """
        self._database, self._out, self._schedule = database, out, schedule
        self._disk_servers = disk_servers
        self._undo = ExitStack()
        self._recording: RunRecording | None = None

    def begin(self) -> None:
        """Attach to a server; to a library's client as soon as it starts."""
        if self._out is None:
            return
        target = self._database.target()
        if target is not None:
            self._attach(target)
        elif isinstance(self._database, Library):
            self._database.on_started = self._attach

    def _attach(self, target: Target) -> None:
        assert self._out is not None
        shutil.rmtree(self._out, ignore_errors=True)
        target = replace(target, disk_servers=self._disk_servers)
        recorder = self._undo.enter_context(Session(target, self._out, self._schedule, lambda _: None))
        self._recording = RunRecording(recorder, self._schedule.duty >= 1)
        self._recording.begin()

    def end(self, elapsed_s: float) -> None:
        """End and write the recording, if there is one. Transactions are derived from it later."""
        if self._recording is not None:
            self._recording.end(elapsed_s)
            self._recording.finish(None)

    def close(self) -> None:
        """Detach; an unfinished recording leaves nothing."""
        if isinstance(self._database, Library):
            self._database.on_started = lambda _: None
        if self._recording is not None:
            self._recording.end()
        self._undo.close()


@contextmanager
def taking(
    database: Database, out: Path | None, duty: float, disk_servers: Callable[[], list[int]]
) -> Iterator[Taker]:
    """A taker that is always detached at the end; with a duty of 1 it records everything."""
    taker = Taker(database, out, Schedule(None, duty, _BURST_S), disk_servers)
    try:
        yield taker
    finally:
        taker.close()
