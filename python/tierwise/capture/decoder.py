"""Decodes bursts during the run on an idle core, or else after the run."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tierwise import _core
from tierwise.capture.facts import Facts, FileFacts
from tierwise.host import cpu

_LOOKS_EACH_S = 1.0
_FREE_CORES = 1.0
_MOST_WAITING_BYTES = 256 << 20


@dataclass
class Burst:
    """A burst that waits to be decoded."""

    size_bytes: int
    paths: list[str]
    """Files that were open in the burst."""
    facts: Mapping[str, Facts] = field(default_factory=dict)
    """Facts of these files at the end of the burst."""


class Decoder:
    """A thread that decodes bursts during the run; :meth:`finish` decodes the rest.

    Decoding a burst takes longer than tracing one. A low priority alone does not protect a busy database:
    where the kernel first shares cores between groups of processes, the recorder's group gets the same share
    as the database's, whatever the priorities within it. So the thread waits until a core is idle or the
    backlog is too large. Only file facts are looked up at once, because the file may be gone later.
    """

    def __init__(self, recorder: _core.Recorder, facts: FileFacts) -> None:
        """Start the thread."""
        self._recorder, self._facts = recorder, facts
        self._come: queue.SimpleQueue[Burst | None] = queue.SimpleQueue()
        self._waiting: deque[Burst] = deque()
        self._ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="decoder", daemon=True)
        self._thread.start()

    def burst_ended(self, burst: Burst) -> None:
        """Add a burst."""
        self._come.put(burst)

    def finish(self) -> None:
        """Decode the remaining bursts at full speed.

        Raises:
            Exception: the first error of the decoding thread.
        """
        self.abandon()
        if self._failure is not None:
            raise self._failure
        while self._decode() is not None:
            pass

    def abandon(self) -> None:
        """Stop after the current burst, which is decoded at full speed. No error if the thread has ended."""
        self._ending = True
        self._come.put(None)
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                os.sched_setscheduler(self._thread.native_id or 0, os.SCHED_OTHER, os.sched_param(0))
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        try:
            idle = _IdleCores()
            while not self._ending:
                self._take()
                if self._waiting and (self._too_much_waits() or idle.enough()):
                    self._decode()
                    idle = _IdleCores()
        # Raised by `finish`, on the thread that can handle it.
        except BaseException as error:
            self._failure = error

    def _take(self) -> None:
        """Take the next burst; with a backlog, wait only until the next look for an idle core."""
        with contextlib.suppress(queue.Empty):
            burst = self._come.get(timeout=_LOOKS_EACH_S if self._waiting else None)
            if burst is not None:
                burst.facts = self._facts.snapshot(burst.paths)
                self._waiting.append(burst)

    def _too_much_waits(self) -> bool:
        return sum(burst.size_bytes for burst in self._waiting) > _MOST_WAITING_BYTES

    def _decode(self) -> int | None:
        """Decode the oldest burst; gives the number of its events, ``None`` if there is no burst."""
        earlier = self._waiting.popleft().facts if self._waiting else {}
        return self._recorder.decode(lambda paths: self._facts.resolve(paths, earlier))


class _IdleCores:
    """Whether a core was idle, on average since the last look."""

    def __init__(self) -> None:
        """Take the first reading."""
        self._at, self._idle_s = time.monotonic(), cpu.idle_s()

    def enough(self) -> bool:
        """Whether a core was idle enough for one busy thread; false too soon after a look, when not known."""
        now = time.monotonic()
        if now - self._at < _LOOKS_EACH_S / 2:
            return False
        idle_s = cpu.idle_s()
        cores = (idle_s - self._idle_s) / (now - self._at)
        self._at, self._idle_s = now, idle_s
        return cores >= min(_FREE_CORES, (os.cpu_count() or 1) / 2)
