"""Group commit for a library that lacks it: one flush for all waiting writers."""

from __future__ import annotations

import threading
from collections.abc import Callable


class GroupCommit:
    """Lets one caller flush for itself and for all callers that arrived during the previous flush."""

    def __init__(self, flush: Callable[[], None]) -> None:
        """Take the flush function, which makes all earlier writes durable."""
        self._flush = flush
        self._turn = threading.Condition()
        self._written = 0
        self._durable = 0
        self._flushing = False

    def wait(self) -> None:
        """Return when all of the caller's earlier writes are durable.

        An error of a flush is raised only to its caller; the other callers retry.
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
