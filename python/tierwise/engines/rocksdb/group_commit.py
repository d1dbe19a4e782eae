"""One flush for all who wait for one: what databases do among their writers, for a library that does not."""

from __future__ import annotations

import threading
from collections.abc import Callable


class GroupCommit:
    """Lets one caller flush for itself and for all that came while the flush before was under way."""

    def __init__(self, flush: Callable[[], None]) -> None:
        """Take the function that makes everything durable that was written before it is called."""
        self._flush = flush
        self._turn = threading.Condition()
        self._written = 0
        self._durable = 0
        self._flushing = False

    def wait(self) -> None:
        """Return when everything that the caller wrote so far is durable.

        Whatever a flush raises is raised to its caller alone; the others try again themselves.
        """
        with self._turn:
            self._written += 1
            mine = self._written
            self._turn.wait_for(lambda: self._durable >= mine or not self._flushing)
            if self._durable >= mine:
                return
            self._flushing = True
            covered = self._written
        try:
            self._flush()
        except BaseException:
            covered = 0
            raise
        finally:
            with self._turn:
                self._durable = max(self._durable, covered)
                self._flushing = False
                self._turn.notify_all()
