"""Exact bounds of a share from counts."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_STEPS = 60


def upper_share(events: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The greatest share of events that ``events`` of ``trials`` do not contradict, with 95 % confidence.

    ``confidence`` is another one. One-sided and exact: Clopper and Pearson, "The use of confidence or
    fiducial limits illustrated in the case of the binomial", Biometrika 26 (1934). For no event it is
    ``1 - 0.05 ** (1 / trials)``, about ``3 / trials`` (the rule of three).

    Raises:
        ValueError: for counts that cannot be.
    """
    if not 0 <= events <= trials or trials == 0:
        raise ValueError(f"{events} of {trials}")
    if events == trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        if _at_most(events, trials, share) > 1 - confidence:
            low = share
        else:
            high = share
    return high


def share_interval(events: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share, two-sided and exact (Clopper and Pearson).

    Raises:
        ValueError: for counts that cannot be.
    """
    each = (1 + CONFIDENCE) / 2
    return 1 - upper_share(trials - events, trials, each), upper_share(events, trials, each)


def _at_most(events: int, trials: int, share: float) -> float:
    """Probability of at most so many events."""
    return sum(math.comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(events + 1))
