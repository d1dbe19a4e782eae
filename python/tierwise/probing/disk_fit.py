"""A hard disk's parameters from times alone: rotation, zones, seeks, overheads, write cache.

- Rotation: the same block written and flushed over and over takes a revolution each time. Where a cache
  answers, the spread of random reads gives it: rotational latency is even over a revolution.
- Media rate: reads in sequence, several at a time; the median step from one completion to the next is
  free of track switches as long as a block is far shorter than a track. What the quickest of the long
  steps take more is skew; slower ones have missed a turn.
- Seeks: random reads at known distances. Their time is overhead, seek, rotational latency (half a
  revolution on average) and transfer; the seek is fitted as ``c + a·√x + b·x`` over the share ``x`` of
  the stroke (the form of Lee and Katz, SIGMETRICS 1993), ``a`` and ``b`` not negative, by least squares.
  Bytes become cylinders through the media rates. A read that misses by more than a revolution was
  disturbed and is left out.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from tierwise import _core
from tierwise.probing.samples import Request, at_random, cycles_us, rewrites, settle, times_us
from tierwise.statistics import Interval, median_interval

ZONES = 6
_BLOCK_BYTES = 4096
_REVOLUTIONS_US = (3_900.0, 17_200.0)
"""Of disks that turn 15,385 to 3,488 times a minute."""
_NEAR_BYTES = 32 << 20
"""Nearer reads may lie on one cylinder, where there is no seek."""
_FEWEST_BLOCKS = 8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DiskFit:
    """Parameters of a disk as far as its blocks reach; times in µs, rates in 10^6 bytes a second.

    Attributes:
        rpm: revolutions a minute.
        media_mb_per_s: rate at the middle of each of :data:`ZONES` equal parts, outermost first.
        skew_share: time lost at the end of each track, in revolutions.
        single_us: shortest seek.
        average_us: over random pairs of places.
        full_us: from end to end.
        overhead_us: of a command that the cache serves.
        write_settle_us: what a write to the medium takes more than a read.
        write_cache: whether writes are reported before they are on the medium.
        write_hit_us: time of a write that the cache takes.
        span_bytes: what was measured.
        seeks: number of random reads that the seeks rest on.
        rewrites_seen: whether rewriting gave the rotation.
    """

    rpm: Interval
    media_mb_per_s: list[Interval]
    skew_share: float
    single_us: float
    average_us: float
    full_us: float
    overhead_us: float
    write_settle_us: float
    write_cache: bool
    write_hit_us: float
    span_bytes: int
    seeks: int
    rewrites_seen: bool


@dataclass(frozen=True)
class _Seeks:
    single_us: float
    average_us: float
    full_us: float
    reads: int
    read_mean_us: float
    spread_revolution_us: float


def fit_disk(target: _core.ProbeTarget, seconds: float, repeats: int, random: Random) -> DiskFit:
    """Measure and fit a disk in about ``seconds``."""
    settle(target, random)
    cycles = [_rewrite_us(target, 0.1 * seconds / repeats) for _ in range(repeats)]
    overhead_us = _overhead_us(target, random)
    rates, switch_us = _media_rates(target, 0.16 * seconds, repeats)
    guess_us = min(max(statistics.median(cycles), _REVOLUTIONS_US[0]), _REVOLUTIONS_US[1])
    reads = _random_reads(target, 0.56 * seconds, random)
    seeks = _fit_seeks(reads, target.size_bytes, rates, overhead_us, guess_us)
    revolutions = _revolutions_us(cycles, seeks.spread_revolution_us)
    writes_us = times_us(target, at_random(target, "W", _BLOCK_BYTES, random), 0.08 * seconds)
    revolution_us = statistics.median(revolutions or [seeks.spread_revolution_us])
    cached = statistics.median(writes_us) < revolution_us / 3
    rpm = median_interval([60e6 / one for one in revolutions or [seeks.spread_revolution_us]])
    return DiskFit(
        rpm=rpm,
        media_mb_per_s=[median_interval(rate) for rate in rates],
        skew_share=min(switch_us / revolution_us, 0.5),
        single_us=seeks.single_us,
        average_us=seeks.average_us,
        full_us=seeks.full_us,
        overhead_us=overhead_us,
        write_settle_us=0.0 if cached else max(statistics.mean(writes_us) - seeks.read_mean_us, 0.0),
        write_cache=cached,
        write_hit_us=statistics.median(writes_us) if cached else overhead_us,
        span_bytes=target.size_bytes,
        seeks=seeks.reads,
        rewrites_seen=bool(revolutions),
    )


def _rewrite_us(target: _core.ProbeTarget, seconds: float) -> float:
    """The usual time to write a block again, without those that missed one turn or more."""
    cycles = np.array(cycles_us(target, rewrites(), seconds))
    return float(np.median(cycles[cycles < 1.5 * np.quantile(cycles, 0.2)]))


def _revolutions_us(cycles: list[float], spread_us: float) -> list[float]:
    """Cycles of rewriting, divided by the whole number of revolutions that fits the spread of reads best."""
    least, most = _REVOLUTIONS_US
    found = []
    for cycle in cycles:
        fitting = [cycle / turns for turns in (1, 2, 3) if least <= cycle / turns <= most]
        if fitting:
            found.append(min(fitting, key=lambda one: abs(one / spread_us - 1)))
    return found if len(found) == len(cycles) else []


def _overhead_us(target: _core.ProbeTarget, random: Random) -> float:
    """Median time of a read that the cache serves: the one just read."""
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
    """A block that passes in an eighth of a fast disk's revolution or less."""
    block = 128 << 10
    while block > 16 << 10:
        step_us = float(np.median(_sequence(target, 0, block, seconds)))
        if step_us < _REVOLUTIONS_US[0] / 6:
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


@dataclass(frozen=True)
class _Reads:
    starts: Floats
    """First byte of each."""
    times_us: Floats


def _random_reads(target: _core.ProbeTarget, seconds: float, random: Random) -> _Reads:
    """Reads one at a time, half of them anywhere, half at a distance that is even on a logarithmic scale."""
    blocks = target.size_bytes // _BLOCK_BYTES
    places, here = [], 0
    for number in range(20_000):
        if number % 2:
            here = random.randrange(blocks)
        else:
            reach = (
                int(np.exp(random.uniform(np.log(_NEAR_BYTES), np.log(target.size_bytes)))) // _BLOCK_BYTES
            )
            here = (here + random.choice((-1, 1)) * reach) % blocks
        places.append(here * _BLOCK_BYTES)
    requests: list[Request] = [("R", place, _BLOCK_BYTES) for place in places]
    found = times_us(target, requests, seconds)
    return _Reads(np.array(places[: len(found)], dtype=np.float64), np.array(found))


def _fit_seeks(
    reads: _Reads, size_bytes: int, rates: list[list[float]], overhead_us: float, revolution_us: float
) -> _Seeks:
    """Least squares over the reads, twice: the second time without those that were disturbed."""
    distance = np.abs(np.diff(_stroke(reads.starts, rates, size_bytes)))
    time_us = reads.times_us[1:] - overhead_us
    wide = distance * size_bytes > _NEAR_BYTES
    distance, time_us = distance[wide], time_us[wide]
    for _ in range(3):
        base, root, slope = _least_squares(distance, time_us)
        rest_us = time_us - (base + root * np.sqrt(distance) + slope * distance)
        kept = np.abs(rest_us) < 0.65 * revolution_us
        distance, time_us = distance[kept], time_us[kept]
    spread_us = float(np.std(rest_us[kept])) * 12**0.5
    single_us = max(base - revolution_us / 2, 1.0)
    return _Seeks(
        single_us=single_us,
        average_us=single_us + root * 8 / 15 + slope / 3,
        full_us=single_us + root + slope,
        reads=len(time_us),
        read_mean_us=overhead_us + base + root * 8 / 15 + slope / 3,
        spread_revolution_us=min(max(spread_us, _REVOLUTIONS_US[0]), _REVOLUTIONS_US[1]),
    )


def _least_squares(distance: Floats, time_us: Floats) -> tuple[float, float, float]:
    """Base, factor of the root and slope, the last two not negative."""
    best = (float(np.mean(time_us)), 0.0, 0.0)
    best_error = float("inf")
    for columns in ((True, True), (True, False), (False, True), (False, False)):
        parts = [np.ones_like(distance), np.sqrt(distance), distance]
        used = [0, *(number for number, on in enumerate(columns, start=1) if on)]
        solved, *_ = np.linalg.lstsq(
            np.stack([parts[number] for number in used], axis=1), time_us, rcond=None
        )
        factors = np.zeros(3)
        factors[used] = solved
        error = float(np.sum((time_us - sum(f * p for f, p in zip(factors, parts, strict=True))) ** 2))
        if (factors[1:] >= 0).all() and error < best_error:
            best, best_error = (float(factors[0]), float(factors[1]), float(factors[2])), error
    return best


def _stroke(starts: Floats, rates: list[list[float]], size_bytes: int) -> Floats:
    """Share of the stroke at which each byte lies: slow zones hold fewer bytes on a cylinder."""
    weights = np.array([1 / statistics.median(rate) for rate in rates])
    shares = np.concatenate([[0.0], np.cumsum(weights) / np.sum(weights)])
    found: Floats = np.interp(starts, np.linspace(0, size_bytes, len(rates) + 1), shares)
    return found
