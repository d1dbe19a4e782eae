"""How much of its sessions' time a server waits for its log, by asking it now and then."""

from __future__ import annotations

import contextlib
import threading

from tierwise.validation.servers import Database

_SAMPLES_PER_S = 10.0


class WaitSampler(threading.Thread):
    """Asks ten times a second how many sessions wait for the log."""

    def __init__(self, database: Database) -> None:
        """Begin to ask."""
        super().__init__(name="log-waits", daemon=True)
        self._database = database
        self._stopping = threading.Event()
        self._waiting = self._sessions = 0
        self.start()

    def run(self) -> None:
        """Ask until told to stop, or the database cannot tell."""
        with contextlib.suppress(Exception):
            while not self._stopping.wait(1 / _SAMPLES_PER_S):
                found = self._database.log_waiters()
                if found is None:
                    return
                self._waiting += found[0]
                self._sessions += found[1]

    def stop(self) -> float | None:
        """Stop; gives the share of the sessions' time."""
        self._stopping.set()
        self.join()
        self._database.stop_watching()
        return self._waiting / self._sessions if self._sessions else None
