"""Activity of a database seen from outside: the rate at which its threads give up their core to wait.

The rate is not a unit of work; the ratio with and without recording gives the cost of recording.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

from tierwise.model.statistics import mean_half_width

_SWITCHES = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


def waits_of(pids: list[int]) -> int:
    """Voluntary context switches of all threads of some processes, since each started."""
    return sum(_waits_of_thread(path) for pid in pids for path in Path(f"/proc/{pid}/task").glob("[0-9]*"))


def _waits_of_thread(folder: Path) -> int:
    try:
        found = _SWITCHES.search((folder / "status").read_text("utf-8", "replace"))
    except OSError:
        return 0
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Span:
    """A stretch of time, with its number of waits."""

    recorded: bool
    elapsed_s: float
    waits: int

    @property
    def rate_per_s(self) -> float:
        """Waits per second."""
        return self.waits / self.elapsed_s if self.elapsed_s > 0 else 0.0


class RateMeter:
    """Cuts time into spans, with and without recording."""

    def __init__(self, count: Callable[[], int]) -> None:
        """Begin the first span.

        Args:
            count: gives a number that increases with the work.
        """
        self._count = count
        self.spans: list[Span] = []
        self.restart()

    def restart(self) -> None:
        """Restart the current span; discard the time since the last span's end."""
        self._since, self._at = self._count(), time.monotonic()

    def end(self, *, recorded: bool) -> None:
        """End the current span, and begin the next."""
        count, now = self._count(), time.monotonic()
        self.spans.append(Span(recorded, now - self._at, max(count - self._since, 0)))
        self._since, self._at = count, now


def cost_of(spans: list[Span], event_cpu_ns: float) -> dict[str, Any] | None:
    """Rate with recording over that without, with a 95 % interval; ``None`` for too few pairs.

    Each burst is compared with the spans beside it, so that a slow change of the load cancels out.
    """
    logs = []
    for index, span in enumerate(spans):
        beside = [one.rate_per_s for one in spans[max(index - 1, 0) : index + 2] if not one.recorded]
        if span.recorded and span.rate_per_s > 0 and beside and min(beside) > 0:
            logs.append(log(span.rate_per_s / fmean(beside)))
    if len(logs) < 2:
        return None
    middle = fmean(logs)
    half = mean_half_width(logs)
    return {
        "rate_ratio": exp(middle),
        "rate_ratio_low": exp(middle - half),
        "rate_ratio_high": exp(middle + half),
        "event_cpu_ns": event_cpu_ns,
    }
