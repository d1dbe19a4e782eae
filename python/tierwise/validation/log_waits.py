"""Share of session time spent waiting for the log, sampled from the server."""

from __future__ import annotations

import contextlib
import threading

from tierwise.validation.servers import Database

_SAMPLES_PER_S = 10.0


class WaitSampler(threading.Thread):
    """Samples ten times a second how many sessions wait for the log."""

    def __init__(self, database: Database) -> None:
        """Start sampling."""
        super().__init__(name="log-waits", daemon=True)
        self._database = database
        self._stopping = threading.Event()
        self._waiting = self._sessions = 0
        self.start()

    def run(self) -> None:
        """Sample until stopped, or until the database gives no answer."""
        with contextlib.suppress(Exception):
            while not self._stopping.wait(1 / _SAMPLES_PER_S):
                found = self._database.log_waiters()
                if found is None:
                    return
                self._waiting += found[0]
                self._sessions += found[1]

    def stop(self) -> float | None:
        """Stop and return the share of the sessions' time."""
        self._stopping.set()
        self.join()
        self._database.stop_watching()
        return self._waiting / self._sessions if self._sessions else None
