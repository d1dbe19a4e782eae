"""Fits the parameters of a solid-state disk, or of memory, from times alone.

- Latency: random reads and writes of 4 KiB, one at a time, less the host's processor time for each:
  a prediction has that of the recorded threads.
- A unit's read time: eight readers of the same block wait for one unit, so their rate is the rate of
  one unit. If a cache serves them (the rate exceeds the rate of one unit), four fifths of
  the latency are used, an estimate.
- Units in parallel: random reads at depth 64. Reads fall on ``c`` units at random, which leaves some
  idle; with ``n`` readers and a constant service time ``s`` the rate is about ``c/s · n/(n + 0.6·c)``
  (found by simulating closed queues of 4 to 48 units: within 3 %), solved for ``c``, with the highest
  rate of the repeats, because a busy host only lowers it.
- Link: the highest rate of large requests, reads or writes.
- Program time: random writes at depth 64 on a fully written file, times the units.
- Flush: with nothing to write, likewise; and the additional time after a write.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tierwise import _core
from tierwise.model.statistics import Interval, median_interval
from tierwise.probe.samples import BLOCK_BYTES, at_random, flushes, host_cpu_us, sample_patterns, settle
from tierwise.results.measurements import FlushTimes, Latency, PatternResult

PATTERNS = (
    "rnd4k-q1t1-read",
    "rnd4k-q1t1-write",
    "randread-4k-qd64",
    "randwrite-4k-qd64",
    "seq1m-q8t1-read",
    "seq1m-q8t1-write",
)
_HOST_CPU_S = 0.2
_READERS = 64
_IDLE_FACTOR = 0.6
_SAME_BLOCK_READERS = 8
_MOST_UNITS = 4096


@dataclass(frozen=True)
class FlashFit:
    """Parameters; times in µs, rates in 10^6 bytes a second, each with the interval of its repeats.

    Attributes:
        read_latency_us: random read of 4 KiB at depth 1, less the host's part.
        write_latency_us: likewise, of a write.
        unit_read_us: one unit's time for a read.
        unit_seen: whether that was measured; otherwise it is estimated from the latency.
        units: number of units that work in parallel.
        write_iops: random writes at depth 64.
        read_mb_per_s: large reads in sequence.
        link_mb_per_s: highest rate seen.
        flush_us: with nothing to write.
        flush_waits_us: additional time of a flush right after a write.
        span_bytes: size of the probed span.
    """

    read_latency_us: Interval
    write_latency_us: Interval
    unit_read_us: float
    unit_seen: bool
    units: int
    read_iops: Interval
    write_iops: Interval
    read_mb_per_s: Interval
    link_mb_per_s: float
    flush_us: float
    flush_waits_us: float
    span_bytes: int

    @property
    def stripe_kib(self) -> int:
        """Power of two such that all units together give the rate of large reads; at least 4."""
        kib = self.read_mb_per_s.estimate * self.unit_read_us / self.units / 1024
        return int(min(max(2 ** round(math.log2(max(kib, 1))), 4), 1024))

    @property
    def program_us(self) -> float:
        """Time that a unit is busy with a write of 4 KiB."""
        return self.units / self.write_iops.estimate * 1e6


def fit_flash(
    target: _core.ProbeTarget,
    taken: Mapping[str, Sequence[PatternResult]],
    flush: FlushTimes,
    seconds: float,
    repeats: int,
    random: Random,
) -> FlashFit:
    """Fit from earlier pattern results and measure the missing ones, in about ``seconds``."""
    missing = [pattern for pattern in PATTERNS if pattern not in taken]
    samples = dict(taken)
    samples |= sample_patterns(target, missing, repeats, 0.8 * seconds, random, lambda _: None)
    kinds = [at_random(target, op, BLOCK_BYTES, random) for op in ("R", "W")] + [flushes()]
    read_cpu_us, write_cpu_us, flush_cpu_us = (host_cpu_us(target, kind, _HOST_CPU_S) for kind in kinds)
    reads, writes = samples["rnd4k-q1t1-read"], samples["rnd4k-q1t1-write"]
    read = median_interval([_latency_us(sample.read, read_cpu_us) for sample in reads])
    write = median_interval([_latency_us(sample.write, write_cpu_us) for sample in writes])
    read_iops = median_interval([sample.rate_per_s for sample in samples["randread-4k-qd64"]])
    link = max(sample.mb_per_s for name in PATTERNS[-2:] for sample in samples[name])
    settle(target, random)
    unit_us, seen = _unit_read_us(target, read.estimate, 0.2 * seconds)
    flush_us = max(flush.flush_us - flush_cpu_us, 0.0)
    return FlashFit(
        read_latency_us=read,
        write_latency_us=write,
        unit_read_us=unit_us,
        unit_seen=seen,
        units=_units(max(sample.rate_per_s for sample in samples["randread-4k-qd64"]), unit_us),
        read_iops=read_iops,
        write_iops=median_interval([sample.rate_per_s for sample in samples["randwrite-4k-qd64"]]),
        read_mb_per_s=median_interval([sample.mb_per_s for sample in samples["seq1m-q8t1-read"]]),
        link_mb_per_s=link,
        flush_us=flush_us,
        flush_waits_us=max(flush.write_flush_4k_us - flush.write_4k_us - flush.flush_us, 0.0),
        span_bytes=target.size_bytes,
    )


def _latency_us(latency: Latency | None, cpu_us: float) -> float:
    assert latency is not None, "the pattern has requests of this kind"
    return max(latency.p50_us - cpu_us, 0.1)


def _unit_read_us(target: _core.ProbeTarget, latency_us: float, seconds: float) -> tuple[float, bool]:
    """Read time of one unit, and whether it was measured."""
    same = [("R", 0, BLOCK_BYTES)] * 100_000
    done = target.trace(same, _SAME_BLOCK_READERS, max(seconds, 0.05))
    ends_us = sorted(end_ns / 1e3 for _, _, end_ns in done)
    each_us = (ends_us[-1] - ends_us[0]) / (len(ends_us) - 1) if len(ends_us) > 1 else 0.0
    seen = 0.3 * latency_us < each_us <= latency_us
    return (each_us, True) if seen else (0.8 * latency_us, False)


def _units(read_iops: float, unit_us: float) -> int:
    """Units in parallel, from the rate of ``_READERS`` readers."""
    busy = read_iops * unit_us / 1e6
    idle = min(_IDLE_FACTOR * busy / _READERS, 0.9)
    return min(max(round(busy / (1 - idle)), 1), _MOST_UNITS)
