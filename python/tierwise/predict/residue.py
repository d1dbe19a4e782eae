"""The residue of the recorded run, carried into every answer.

The residue is the recorded minus the reproduced time of a transaction. Its composition is unknown. The value
of an answer assumes that it is composed as the recorded time is: its processor and device parts change as
those times do, the rest is constant. The interval also spans three other assumptions: that all of it is a
constant time, processor time, or device time. They apply only to the part of the residue that exceeds chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROCESSOR = ("cpu", "runnable")
"""Parts of the sessions' time that processors decide."""
DEVICES = ("log_device", "log_queue", "read", "write")
"""Parts of the sessions' time that devices decide."""
CHANCE = 0.03
"""Error of the rate that chance explains: quiet runs of the same client and server differ by 0.1 to 3 %."""
_MOST_LONGER = 2.0
_MOST_SHORTER = 0.9
"""Judgement: largest shares by which processor or device time was longer or shorter than replayed. The rest
of the residue is constant."""
_LEAST_SHARE = 0.25
"""Least share of its replayed time that a transaction keeps, however large a negative residue is."""


class Residue:
    """The residue of a recorded run.

    Args:
        error: reproduced over recorded rate, less 1.
        response_us: time of a transaction, the client's own included, as reproduced.
        shares: of that time, by part.
    """

    def __init__(self, error: float, response_us: float, shares: Mapping[str, float]) -> None:
        """Store what was reproduced."""
        self._response_us, self._shares = response_us, shares
        self.error = error
        """Residue over the reproduced time of a transaction."""
        self._beyond_chance = max(1 - CHANCE / abs(error), 0.0) if error else 0.0

    def scales(self, response_us: float, shares: Mapping[str, float]) -> list[float]:
        """The residue in an answer over that in the recorded run: in proportion, then by each assumption."""
        each = [self._times(parts, response_us, shares) for parts in (PROCESSOR, DEVICES)]
        proportional = 1.0 + sum(share * (times - 1) for share, times in each)
        extremes = [1.0, *(1 + self._held(share) * (times - 1) for share, times in each if share > 0)]
        beyond = self._beyond_chance
        return [proportional, *(proportional + beyond * (one - proportional) for one in extremes)]

    def _times(
        self, parts: Sequence[str], response_us: float, shares: Mapping[str, float]
    ) -> tuple[float, float]:
        """The share of these parts in the recorded run, and the ratio of their time in an answer to it."""
        share = time_share(self._shares, parts)
        now_us = response_us * time_share(shares, parts)
        return share, now_us / (self._response_us * share) if share > 0 else 1.0

    def _held(self, share: float) -> float:
        """The largest share of the residue that an error in this share of the recorded time may explain."""
        if not self.error:
            return 0.0
        room = share * (_MOST_LONGER if self.error > 0 else -_MOST_SHORTER)
        return min(room / self.error, 1.0)


def carried_us(time_us: float, residue_us: float) -> float:
    """A replayed time of a transaction with its residue."""
    return max(time_us + residue_us, _LEAST_SHARE * time_us)


def time_share(shares: Mapping[str, float], parts: Sequence[str]) -> float:
    """Share of the sessions' time that went to any of these."""
    return sum(shares.get(part, 0.0) for part in parts)
