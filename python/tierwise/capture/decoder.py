"""Bursts are decoded beside the run, but only on a core that nobody else wants; else after it."""

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
    """Files that were open in it."""
    facts: Mapping[str, Facts] = field(default_factory=dict)
    """Of these, as they were when it ended."""


class Decoder:
    """A thread that decodes bursts as they come; what it did not get to is done at the end.

    Decoding a burst takes longer than tracing one. A low priority alone does not keep it from a busy
    database: where the kernel shares cores between groups of processes first, the recorder's group has as
    much as the database's, whatever the priorities within it. So it waits until a core is idle, or until too
    much waits. Only what a file is and where it lies is looked up at once, as it may be gone later.
    """

    def __init__(self, recorder: _core.Recorder, facts: FileFacts) -> None:
        """Start."""
        self._recorder, self._facts = recorder, facts
        self._come: queue.SimpleQueue[Burst | None] = queue.SimpleQueue()
        self._waiting: deque[Burst] = deque()
        self._ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="decoder", daemon=True)
        self._thread.start()

    def burst_ended(self, burst: Burst) -> None:
        """There is one more."""
        self._come.put(burst)

    def finish(self) -> None:
        """Decode what is left, at full speed.

        Raises:
            Exception: the first of those that decoding met.
        """
        self.abandon()
        if self._failure is not None:
            raise self._failure
        while self._decode() is not None:
            pass

    def abandon(self) -> None:
        """Decode no more than the burst under way, at full speed. No error if it has ended."""
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
        # It is told in the end, on the thread that can act on it.
        except BaseException as error:
            self._failure = error

    def _take(self) -> None:
        """Take the next burst; while others wait, for no longer than until the next look."""
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
        """Look for the first time."""
        self._at, self._idle_s = time.monotonic(), cpu.idle_s()

    def enough(self) -> bool:
        """Whether there was room for a thread that computes; not known, thus no, too soon after a look."""
        now = time.monotonic()
        if now - self._at < _LOOKS_EACH_S / 2:
            return False
        idle_s = cpu.idle_s()
        cores = (idle_s - self._idle_s) / (now - self._at)
        self._at, self._idle_s = now, idle_s
        return cores >= min(_FREE_CORES, (os.cpu_count() or 1) / 2)
