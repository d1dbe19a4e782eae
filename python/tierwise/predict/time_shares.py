"""Parts of the sessions' time, and the difference that chance explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierwise.predict.replayed import Demands

DEVICES = ("log_device", "log_queue", "read", "write")
"""Parts of the sessions' time that devices decide."""
CHANCE = 0.03
"""Error of the rate that chance explains: quiet runs of the same client and server differ by 0.1 to 3 %."""


def time_share(shares: Mapping[str, float], parts: Sequence[str]) -> float:
    """Share of the sessions' time that went to any of these."""
    return sum(shares.get(part, 0.0) for part in parts)


def computing(shares: Mapping[str, float], demands: Demands) -> float:
    """Share of the sessions' time on processors or waiting for one, of server and client.

    Its rise from the recorded run to a prediction is how far the predicted rate depends on processor time
    under conditions that the recording does not show: in a closed network, d ln(rate) / d ln(processor time)
    is this share with its sign changed. Assumption: of the time in which a session waits for its client, the
    client computes for the same part as in the recording.
    """
    away_us = demands.client_cpu_us + demands.think_us
    client = demands.client_cpu_us / away_us if away_us > 0 else 0.0
    return time_share(shares, ("cpu", "runnable")) + client * shares.get("client", 0.0)
