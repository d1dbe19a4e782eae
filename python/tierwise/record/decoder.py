"""Bursts are decoded beside the run, but only in time that nobody else wants."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

from tierwise import _core


class Decoder:
    """A thread that decodes bursts as they come; what it did not get to is done at the end.

    It gets next to nothing of a busy processor: decoding a burst takes longer than tracing one, and would
    cost the database more.
    """

    def __init__(self, recorder: _core.Recorder, resolve: Callable[[str], str]) -> None:
        """Start."""
        self._recorder, self._resolve = recorder, resolve
        self._work, self._ending = threading.Semaphore(0), False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="decoder", daemon=True)
        self._thread.start()

    def burst_ended(self) -> None:
        """There is one more."""
        self._work.release()

    def finish(self) -> None:
        """Decode what is left, at full speed.

        Raises:
            Exception: the first of those that decoding met.
        """
        self.abandon()
        if self._failure is not None:
            raise self._failure
        while self._recorder.decode(self._resolve) is not None:
            pass

    def abandon(self) -> None:
        """Decode no more than the burst under way, at full speed. No error if it has ended."""
        self._ending = True
        self._work.release()
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                os.sched_setscheduler(self._thread.native_id or 0, os.SCHED_OTHER, os.sched_param(0))
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        try:
            while self._work.acquire() and not self._ending:
                self._recorder.decode(self._resolve)
        # It is told in the end, on the thread that can act on it.
        except BaseException as error:
            self._failure = error
