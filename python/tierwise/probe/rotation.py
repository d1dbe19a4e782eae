"""Measures a disk's rotation speed from the times at which rewrites of the same block end.

The block passes the head at a fixed angle, so the end times have equal phase for the true period: their
mean direction has a length near 1. A delayed or missed rewrite shifts no other end time.
Fractions of the period fit as well, and a multiple does where every second revolution is missed: the
longest fit is taken, unless the spread of random reads is far smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tierwise.model.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

REVOLUTIONS_US = (3_900.0, 17_200.0)
"""Range for disks that turn 15,385 to 3,488 times a minute."""
_FEWEST_TURNS = 5
_COHERENT = 0.6
"""Least length of the mean direction for a valid period; 40 random phases rarely reach 0.35."""
_NEAR = 0.03
_MOST_SPREADS = 1.6
_FRACTIONS = (3, 2, 3 / 2, 1, 2 / 3, 1 / 2, 1 / 3)


def revolutions_us(ends_us: Sequence[Floats], spread_us: float) -> list[float]:
    """One revolution for each trace of ends; empty if rewriting has no period.

    Args:
        ends_us: end times of rewrites, for each repeat.
        spread_us: revolution estimated from the spread of random reads, some 15 % off.
    """
    least, most = REVOLUTIONS_US
    traces = [ends - ends[0] for ends in ends_us if len(ends) >= _FEWEST_TURNS]
    if not traces or float(np.median(np.concatenate([np.diff(ends) for ends in traces]))) < least / 2:
        return []
    step = least / max(ends[-1] for ends in traces) / 20
    periods = np.exp(np.arange(math.log(least), math.log(most), max(step, 1e-5)))
    joint = np.mean([_coherence(ends, periods) for ends in traces], axis=0)
    if float(joint.max()) < _COHERENT:
        return []
    strongest = float(periods[joint.argmax()])
    fitting = [
        period
        for fraction in _FRACTIONS
        if least <= (period := strongest * fraction) <= most
        and _best_near(period, periods, joint)[1] > 0.9 * float(joint.max())
    ]
    likely = [period for period in fitting if period < _MOST_SPREADS * spread_us]
    chosen = max(likely or fitting or [strongest])
    return [_best_near(chosen, periods, _coherence(ends, periods))[0] for ends in traces]


def _coherence(ends_us: Floats, periods_us: Floats) -> Floats:
    """Length of the mean direction of the ends, for each period."""
    phases = 2j * np.pi * ends_us[None, :] / periods_us[:, None]
    lengths: Floats = np.abs(np.exp(phases).mean(axis=1))
    return lengths


def _best_near(period_us: float, periods_us: Floats, coherence: Floats) -> tuple[float, float]:
    """The most coherent period within 3 % of one, and its coherence."""
    near = np.abs(periods_us / period_us - 1) < _NEAR
    best = int(coherence[near].argmax())
    return float(periods_us[near][best]), float(coherence[near][best])
