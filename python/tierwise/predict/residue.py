"""What replaying the recorded run leaves over, carried into every answer.

The residue is the difference of the recorded and the reproduced time of a transaction. Nobody knows what it
is made of. The value of an answer takes it for a part of everything in proportion: what is processor or
device time in the recorded run changes as that time does, the rest is constant. The interval spans three
other assumptions too: that all of it is a constant time, processor time, or device time. So far as runs of
the same differ by chance, they do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROCESSOR = ("cpu", "runnable")
"""Parts of the sessions' time that processors decide."""
DEVICES = ("log_device", "log_queue", "read", "write")
"""Those that devices decide."""
CHANCE = 0.03
"""Error of the rate that chance explains: quiet runs of the same client and server differ by 0.1 to 3 %."""
_MOST_LONGER = 2.0
_MOST_SHORTER = 0.9
"""Judgement: processor or device time was longer or shorter than replayed by these shares of it at most. What
is left of the residue then is constant."""
_LEAST_SHARE = 0.25
"""Of the replayed time: a transaction keeps it, however much too long the recorded run was replayed."""


class Residue:
    """The residue of a recorded run.

    Args:
        error: reproduced over recorded rate, less 1.
        response_us: time of a transaction, the client's own included, as reproduced.
        shares: of that, by what it went to.
    """

    def __init__(self, error: float, response_us: float, shares: Mapping[str, float]) -> None:
        """Remember what was reproduced; nothing else."""
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
        """The share of such time in the recorded run, and how many times as much there is in an answer."""
        share = time_share(self._shares, parts)
        now_us = response_us * time_share(shares, parts)
        return share, now_us / (self._response_us * share) if share > 0 else 1.0

    def _held(self, share: float) -> float:
        """The share of the residue that time of a share of the recorded run may be wrong by."""
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
