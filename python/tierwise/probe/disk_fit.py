"""Fits a hard disk's parameters from times alone: rotation, zones, seeks, overheads, write cache.

Rotation is measured from the times at which rewrites of the same block end. The block passes the head at a
fixed angle, so the end times have equal phase for the true period: their mean direction has a length near
1. A delayed or missed rewrite shifts no other end time. Fractions of the period fit as well, and a multiple
does where every second revolution is missed: the longest fit is taken, unless the spread of random reads is
far smaller.

Seek times are fitted from random reads at known distances. The time of a read is overhead, seek, rotational
latency and transfer; of these only the latency is random, uniform over a revolution. The seek is fitted as
``c + a·√x + b·x`` over the share ``x`` of the stroke (the form of Lee and Katz, SIGMETRICS 1993): ``a`` and
``b``, not negative, by least squares without reads that were more than a revolution off; ``c`` from the
lower quartile of the residuals, which lies a quarter of a revolution above the minimum, whatever delays the
upper half. The media rates convert bytes to shares of the stroke, because slow zones hold fewer bytes on a
cylinder.

- Media rate: sequential reads, several at a time; the median interval between completions excludes
  track switches if a block is far shorter than a track. Skew is the excess of the fastest of the long
  intervals; slower ones have missed a revolution.
- Overhead: a read that the cache serves. Write cache: whether a random write ends before the medium can
  have turned to its place.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tierwise import _core
from tierwise.model.extras import np
from tierwise.model.statistics import Interval, median_interval
from tierwise.probe.probe_samples import (
    BLOCK_BYTES,
    Request,
    flush_ends_us,
    flushed_rewrites,
    random_requests,
    request_times_us,
    wait_until_device_settles,
)

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


_NEAR_BYTES = 32 << 20
"""Closer reads may lie on the same cylinder, where there is no seek."""
_MOST_READS = 20_000


@dataclass(frozen=True)
class RandomReads:
    """Random reads, in order: first byte and time of each."""

    starts: Floats
    times_us: Floats


@dataclass(frozen=True)
class SeekFit:
    """Seeks, including the command's overhead and the transfer, in µs.

    A seek over a share ``x`` of the probed span takes ``single_us + root_us·√x + slope_us·x``.
    ``read_median_us`` is of reads at random places; ``spread_us`` is the revolution by their spread.
    """

    single_us: float
    root_us: float
    slope_us: float
    reads: int
    read_median_us: float
    spread_us: float


def measure_random_reads(target: _core.ProbeTarget, seconds: float, random: Random) -> RandomReads:
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
    latencies = request_times_us(target, requests, seconds)
    return RandomReads(np.array(places[: len(latencies)], dtype=np.float64), np.array(latencies))


def fit_seeks(
    reads: RandomReads, size_bytes: int, rates: Sequence[float], revolution_us: float | None
) -> SeekFit:
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
    return SeekFit(
        single_us=single_us,
        root_us=root,
        slope_us=slope,
        reads=len(time_us),
        read_median_us=float(np.median(reads.times_us[1::2])),
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
    rates_at: Floats = np.interp(starts, np.linspace(0, size_bytes, len(rates) + 1), shares)
    return rates_at


ZONES = 6
_BLOCK_BYTES = 4096
_FEWEST_BLOCKS = 8
_FIRST_WRITES = 12
"""Number of writes that fit in any cache."""


@dataclass(frozen=True)
class DiskFit:
    """Parameters of a disk within the probed span; times in µs, rates in 10^6 bytes a second.

    Attributes:
        rpm: revolutions a minute.
        media_mb_per_s: rate at the middle of each of :data:`ZONES` equal parts, outermost first.
        skew_share: time lost at the end of each track, in revolutions.
        single_us: shortest seek.
        root_us: additional time of a seek over the probed span, for the root of its length.
        slope_us: the same, in proportion to its length.
        overhead_us: of a command that the cache serves.
        write_settle_us: additional time of a write to the medium over a read.
        write_cache: whether writes are reported before they are on the medium.
        write_hit_us: time of a write that the cache takes.
        span_bytes: size of the probed span.
        seeks: number of random reads that the seeks rest on.
        rewrites_seen: whether the rotation was measured by rewriting.
    """

    rpm: Interval
    media_mb_per_s: list[Interval]
    skew_share: float
    single_us: float
    root_us: float
    slope_us: float
    overhead_us: float
    write_settle_us: float
    write_cache: bool
    write_hit_us: float
    span_bytes: int
    seeks: int
    rewrites_seen: bool

    def seeks_us(self, strokes: float) -> tuple[float, float]:
        """Average seek between random places, and the longest, on a disk of ``strokes`` probed spans.

        Random pairs are a third of the stroke apart on average, and the root of their distance is 8/15.
        """
        root, slope = self.root_us * strokes**0.5, self.slope_us * strokes
        average_us = max(self.single_us + root * 8 / 15 + slope / 3, self.single_us)
        return average_us, max(self.single_us + root + slope, average_us)


def fit_disk(target: _core.ProbeTarget, seconds: float, repeats: int, random: Random) -> DiskFit:
    """Measure and fit a disk in about ``seconds``."""
    wait_until_device_settles(target, random)
    ends_us = [_rewrite_ends_us(target, 0.05 * seconds / repeats) for _ in range(repeats)]
    overhead_us = _overhead_us(target, random)
    rates, switch_us = _media_rates(target, 0.16 * seconds, repeats)
    reads = measure_random_reads(target, 0.56 * seconds, random)
    middles = [statistics.median(rate) for rate in rates]
    spread_us = fit_seeks(reads, target.size_bytes, middles, None).spread_us
    revolutions = revolutions_us(ends_us, spread_us)
    revolution_us = statistics.median(revolutions or [spread_us])
    seeks = fit_seeks(reads, target.size_bytes, middles, revolution_us)
    outside_us = overhead_us + _BLOCK_BYTES / statistics.median(middles)
    wait_until_device_settles(target, random)
    writes_us = request_times_us(target, random_requests(target, "W", _BLOCK_BYTES, random), 0.08 * seconds)
    cached = statistics.median(writes_us[:_FIRST_WRITES]) < revolution_us / 3
    rpm = median_interval([60e6 / revolution for revolution in revolutions or [spread_us]])
    return DiskFit(
        rpm=rpm,
        media_mb_per_s=[median_interval(rate) for rate in rates],
        skew_share=min(switch_us / revolution_us, 0.5),
        single_us=max(seeks.single_us - outside_us, 1.0),
        root_us=seeks.root_us,
        slope_us=seeks.slope_us,
        overhead_us=overhead_us,
        write_settle_us=0.0 if cached else max(statistics.median(writes_us) - seeks.read_median_us, 0.0),
        write_cache=cached,
        write_hit_us=statistics.median(writes_us[:_FIRST_WRITES]) if cached else overhead_us,
        span_bytes=target.size_bytes,
        seeks=seeks.reads,
        rewrites_seen=bool(revolutions),
    )


def _rewrite_ends_us(target: _core.ProbeTarget, seconds: float) -> Floats:
    """End times of rewrites of one block: without flushes, or with them if a cache takes the writes."""
    block = [("W", 0, _BLOCK_BYTES)] * 1000
    ends_us = np.array([end_ns for _, _, end_ns in target.trace(block, 1, seconds)]) / 1e3
    if len(ends_us) > 1 and float(np.median(np.diff(ends_us))) > REVOLUTIONS_US[0] / 2:
        return ends_us
    return flush_ends_us(target, flushed_rewrites(), seconds)


def _overhead_us(target: _core.ProbeTarget, random: Random) -> float:
    """Median time of a read that the cache serves: a repeat of the previous read."""
    block = random.randrange(target.size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
    return statistics.median(request_times_us(target, [("R", block, _BLOCK_BYTES)] * 60, 1.0)[1:] or [200.0])


def _media_rates(target: _core.ProbeTarget, seconds: float, repeats: int) -> tuple[list[list[float]], float]:
    """Repeats of the rate at each part, and the share of a revolution lost at each track's end."""
    each_s = seconds / (ZONES * repeats)
    block = _block_bytes(target, each_s)
    rates: list[list[float]] = [[] for _ in range(ZONES)]
    lost_us = []
    for repeat in range(repeats):
        for zone in range(ZONES):
            middle = (2 * zone + 1) * target.size_bytes // (2 * ZONES)
            start = middle + (repeat * 24 << 20) % (target.size_bytes // ZONES // 3)
            steps_us = _sequence(target, start // _BLOCK_BYTES * _BLOCK_BYTES, block, each_s)
            typical_us = float(np.median(steps_us))
            rates[zone].append(block / typical_us)
            switches_us = steps_us[steps_us > 1.4 * typical_us] - typical_us
            lost_us.append(float(np.quantile(switches_us, 0.25)) if len(switches_us) else 0.0)
    return rates, statistics.median(lost_us)


def _block_bytes(target: _core.ProbeTarget, seconds: float) -> int:
    """A block that passes the head in at most an eighth of a fast disk's revolution."""
    block = 128 << 10
    while block > 16 << 10:
        step_us = float(np.median(_sequence(target, 0, block, seconds)))
        if step_us < REVOLUTIONS_US[0] / 6:
            break
        block //= 2
    return block


def _sequence(target: _core.ProbeTarget, start: int, block: int, seconds: float) -> Floats:
    count = max(min((target.size_bytes - start) // block, 4096), _FEWEST_BLOCKS + 4)
    start = min(start, target.size_bytes - count * block)
    requests = [("R", start + number * block, block) for number in range(count)]
    done = target.trace(requests, 4, seconds)
    if len(done) < _FEWEST_BLOCKS + 4:
        done = target.trace(requests[: _FEWEST_BLOCKS + 4], 4, 60)
    ends_us = np.sort(np.array([end_ns for _, _, end_ns in done], dtype=np.float64)) / 1e3
    steps_us: Floats = np.diff(ends_us)[3:]
    return steps_us
