"""Increases of a server's counters, kept up to date so that a lost connection loses little."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tierwise.capture.counter_reading import Reading, UnreadableError
from tierwise.capture.observe.server import Server

EVERY_S = 10.0
"""Time between two readings."""


@dataclass
class Counting:
    """Counters, summed over the intervals between readings."""

    server: Server
    counts: dict[str, int] = field(default_factory=dict)
    counted_s: float = 0.0
    limits: list[str] = field(default_factory=list)
    """Intervals that are not in the sums, as sentences."""
    _before: Reading | None = None
    _read_s: float = 0.0
    _resets: int = 0

    def read(self) -> None:
        """Read the counters and add their increases since the last reading.

        An interval in which statistics were reset counts for nothing.

        Raises:
            UnreadableError: if the server does not answer.
        """
        now, now_s = self.server.read(), time.monotonic()
        before, self._before = self._before, now
        since_s, self._read_s = now_s - self._read_s, now_s
        if before is None:
            return
        if before.origin != now.origin or any(
            now.counts.get(name, 0) < count for name, count in before.counts.items()
        ):
            self._resets += 1
            return
        self.counted_s += since_s
        for name, count in now.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count - before.counts.get(name, 0)

    def read_if_due(self) -> None:
        """Read if the last reading is long enough ago; raises as :meth:`read`."""
        if time.monotonic() - self._read_s >= EVERY_S:
            self.read()

    def finish(self) -> None:
        """Read a last time, if the server still answers, and say what is missing."""
        try:
            self.read()
        except UnreadableError as error:
            self.limits.append(
                f"the counters are of the first {self.counted_s:,.0f} s only, then they could not be read: "
                f"{error.reason}"
            )
        if self.counts:
            self.counts["transactions"] = self.server.transactions(self.counts)
        if self._resets:
            self.limits.append(
                f"the server's statistics were reset meanwhile, {self._resets} times: the intervals between "
                "readings in which that happened are not counted"
            )
