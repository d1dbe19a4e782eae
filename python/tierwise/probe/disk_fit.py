"""Fits a hard disk's parameters from times alone: rotation, zones, seeks, overheads, write cache.

- Rotation: see :mod:`tierwise.probe.rotation`; seeks: see :mod:`tierwise.probe.seek_fit`.
- Media rate: sequential reads, several at a time; the median interval between completions excludes
  track switches if a block is far shorter than a track. Skew is the excess of the fastest of the long
  intervals; slower ones have missed a revolution.
- Overhead: a read that the cache serves. Write cache: whether a random write ends before the medium can
  have turned to its place.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tierwise import _core
from tierwise.model.extras import np
from tierwise.model.statistics import Interval, median_interval
from tierwise.probe.rotation import REVOLUTIONS_US, revolutions_us
from tierwise.probe.samples import at_random, flush_ends_us, rewrites, settle, times_us
from tierwise.probe.seek_fit import fit_seeks, random_reads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

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
    settle(target, random)
    ends_us = [_rewrite_ends_us(target, 0.05 * seconds / repeats) for _ in range(repeats)]
    overhead_us = _overhead_us(target, random)
    rates, switch_us = _media_rates(target, 0.16 * seconds, repeats)
    reads = random_reads(target, 0.56 * seconds, random)
    middles = [statistics.median(rate) for rate in rates]
    spread_us = fit_seeks(reads, target.size_bytes, middles, None).spread_us
    revolutions = revolutions_us(ends_us, spread_us)
    revolution_us = statistics.median(revolutions or [spread_us])
    seeks = fit_seeks(reads, target.size_bytes, middles, revolution_us)
    outside_us = overhead_us + _BLOCK_BYTES / statistics.median(middles)
    settle(target, random)
    writes_us = times_us(target, at_random(target, "W", _BLOCK_BYTES, random), 0.08 * seconds)
    cached = statistics.median(writes_us[:_FIRST_WRITES]) < revolution_us / 3
    rpm = median_interval([60e6 / one for one in revolutions or [spread_us]])
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
    return flush_ends_us(target, rewrites(), seconds)


def _overhead_us(target: _core.ProbeTarget, random: Random) -> float:
    """Median time of a read that the cache serves: a repeat of the previous read."""
    block = random.randrange(target.size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
    return statistics.median(times_us(target, [("R", block, _BLOCK_BYTES)] * 60, 1.0)[1:] or [200.0])


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
