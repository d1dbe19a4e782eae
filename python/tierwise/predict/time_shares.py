"""Parts of the sessions' time, and the difference that chance explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DEVICES = ("log_device", "log_queue", "read", "write")
"""Parts of the sessions' time that devices decide."""
CHANCE = 0.03
"""Error of the rate that chance explains: quiet runs of the same client and server differ by 0.1 to 3 %."""


def time_share(shares: Mapping[str, float], parts: Sequence[str]) -> float:
    """Share of the sessions' time that went to any of these."""
    return sum(shares.get(part, 0.0) for part in parts)
