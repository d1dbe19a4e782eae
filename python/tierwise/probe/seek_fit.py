"""Fits a disk's seek times from random reads at known distances.

The time of a read is overhead, seek, rotational latency and transfer; of these only the latency is
random, uniform over a revolution. The seek is fitted as ``c + a·√x + b·x`` over the share ``x`` of the
stroke (the form of Lee and Katz, SIGMETRICS 1993): ``a`` and ``b``, not negative, by least squares
without reads that were more than a revolution off; ``c`` from the lower quartile of the residuals, which
lies a quarter of a revolution above the minimum, whatever delays the upper half. The media rates convert
bytes to shares of the stroke, because slow zones hold fewer bytes on a cylinder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tierwise import _core
from tierwise.model.extras import np
from tierwise.probe.rotation import REVOLUTIONS_US
from tierwise.probe.samples import BLOCK_BYTES, Request, times_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_NEAR_BYTES = 32 << 20
"""Closer reads may lie on the same cylinder, where there is no seek."""
_MOST_READS = 20_000


@dataclass(frozen=True)
class Reads:
    """Random reads, in order: first byte and time of each."""

    starts: Floats
    times_us: Floats


@dataclass(frozen=True)
class Seeks:
    """Seeks, including the command's overhead and the transfer, in µs.

    A seek over a share ``x`` of the probed span takes ``single_us + root_us·√x + slope_us·x``.
    ``spread_us`` is the revolution estimated from the spread of the reads.
    """

    single_us: float
    root_us: float
    slope_us: float
    reads: int
    read_median_us: float
    spread_us: float


def random_reads(target: _core.ProbeTarget, seconds: float, random: Random) -> Reads:
    """Read one at a time, half at random places, half at distances uniform on a logarithmic scale."""
    blocks = target.size_bytes // BLOCK_BYTES
    nearest, farthest = math.log(min(_NEAR_BYTES, target.size_bytes / 2)), math.log(target.size_bytes)
    places, here = [], 0
    for number in range(_MOST_READS):
        if number % 2:
            here = random.randrange(blocks)
        else:
            reach = int(math.exp(random.uniform(nearest, farthest))) // BLOCK_BYTES
            here = (here + random.choice((-1, 1)) * reach) % blocks
        places.append(here * BLOCK_BYTES)
    requests: list[Request] = [("R", place, BLOCK_BYTES) for place in places]
    found = times_us(target, requests, seconds)
    return Reads(np.array(places[: len(found)], dtype=np.float64), np.array(found))


def fit_seeks(reads: Reads, size_bytes: int, rates: Sequence[float], revolution_us: float | None) -> Seeks:
    """Fit the seeks; without ``revolution_us``, only the spread is reliable."""
    distance = np.abs(np.diff(_stroke(reads.starts, rates, size_bytes)))
    time_us = reads.times_us[1:]
    wide = distance * size_bytes > min(_NEAR_BYTES, size_bytes / 8)
    distance, time_us = distance[wide], time_us[wide]
    rest_us, root, slope = time_us, 0.0, 0.0
    for _ in range(3):
        base, root, slope = _least_squares(distance, time_us)
        rest_us = time_us - root * np.sqrt(distance) - slope * distance
        kept = np.abs(rest_us - base) < 0.65 * (revolution_us or REVOLUTIONS_US[1])
        distance, time_us, rest_us = distance[kept], time_us[kept], rest_us[kept]
    least, most = REVOLUTIONS_US
    quartiles = np.quantile(rest_us, [0.25, 0.75])
    spread_us = min(max(2 * float(quartiles[1] - quartiles[0]), least), most)
    single_us = max(float(quartiles[0]) - (revolution_us or spread_us) / 4, 1.0)
    return Seeks(
        single_us=single_us,
        root_us=root,
        slope_us=slope,
        reads=len(time_us),
        read_median_us=float(np.median(reads.times_us)),
        spread_us=spread_us,
    )


def _least_squares(distance: Floats, time_us: Floats) -> tuple[float, float, float]:
    """Base, root factor and slope, the last two not negative."""
    columns = np.stack([np.ones_like(distance), np.sqrt(distance), distance], axis=1)
    best, best_error = np.array([float(np.mean(time_us)), 0.0, 0.0]), math.inf
    for used in ([0, 1, 2], [0, 1], [0, 2]):
        factors = np.zeros(3)
        factors[used] = np.linalg.lstsq(columns[:, used], time_us, rcond=None)[0]
        error = float(np.sum((time_us - columns @ factors) ** 2))
        if (factors[1:] >= 0).all() and error < best_error:
            best, best_error = factors, error
    return float(best[0]), float(best[1]), float(best[2])


def _stroke(starts: Floats, rates: Sequence[float], size_bytes: int) -> Floats:
    """Share of the stroke at which each byte lies."""
    weights = 1 / np.array(rates)
    shares = np.concatenate([[0.0], np.cumsum(weights) / np.sum(weights)])
    found: Floats = np.interp(starts, np.linspace(0, size_bytes, len(rates) + 1), shares)
    return found
