"""Fits the parameters of a solid-state disk, or of memory, from times alone.

Every time is a mean, so that the profile does as many requests a second as were measured, also of a device
with a few slow ones.

- Latency: random reads and writes of 4 KiB, one at a time, less the host's processor time for each:
  a prediction has that of the recorded threads.
- A unit's read time: eight readers of the same block wait for one unit, so their rate is the rate of
  one unit. If a cache serves them (the rate exceeds the rate of one unit), four fifths of
  the latency are used, an estimate. If random reads at depth 64 do no more than they, a limit of I/Os, as of
  a volume, acts as one unit.
- Units in parallel: random reads at depth 64. Reads fall on ``c`` units at random, which leaves some
  idle; with ``n`` readers and a constant service time ``s`` the rate is about ``c/s · n/(n + 0.6·c)``
  (found by simulating closed queues of 4 to 48 units: within 3 %), solved for ``c``. The unit's time is then
  set so that the model does the measured rate: ``c`` is a whole number.
- Program time: likewise, from random writes at depth 64 on a fully written file.
- Link: the rates of large requests, of reads and of writes. If the units themselves bound large reads, the
  link is what a read's latency leaves beside its unit's time.
- Bus of a unit, and stripe: a read of 16 KiB takes longer than one of 4 KiB by what its unit's bus and the
  link move more. Reads of 64 KiB and 1 MiB are faster if more units share them, and reads of 4 KiB in
  sequence wait for the unit that holds them: the stripe, and the units on a bus, are those nearest to these
  rates. No bus is written if the profile meets them better without, or writes worse with it.
- Flush: with nothing to write; and after a write, as a log has it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.model import executor
from tierwise.model.statistics import Interval, median_interval
from tierwise.probe.probe_samples import (
    BLOCK_BYTES,
    empty_flushes,
    flush_ends_us,
    flushed_appends,
    host_cpu_us,
    request_times_us,
    sample_patterns,
    wait_until_device_settles,
)
from tierwise.results.measurements import PatternResult

PATTERNS = (
    "rnd4k-q1t1-read",
    "rnd4k-q1t1-write",
    "randread-4k-qd64",
    "randwrite-4k-qd64",
    "seq1m-q8t1-read",
    "seq1m-q8t1-write",
    "seq1m-q1t1-read",
    "rnd4k-q32t1-read",
)
_HOST_CPU_S = 0.2
_DEEP_READ, _DEEP_WRITE = PATTERNS[2:4]
_HALF_DEEP_READ = PATTERNS[-1]
_READERS = 64
_IDLE_FACTOR = 0.6
_SAME_BLOCK_READERS = 8
_LEAST_READING_S = 0.05
_MOST_UNITS = 4096
_LEAST_US = 0.1
_LARGE_BYTES = 1 << 20
_MEDIUM_BYTES = 16 << 10
_MEDIUM_READ = "randread-16k"
_STRIPE_READS = (_MEDIUM_READ, "randread-64k", "seqread-4k-qd8")
"""Reads that tell a unit's bus and stripe; they need less time than writes, which must outlast a cache."""
_STRIPED_READS = (*_STRIPE_READS, "seq1m-q1t1-read", "seq1m-q8t1-read")
_MOST_STRIPE_KIB = 1024
_STRIPED = 500
"""Reads that the model serves to try a stripe."""
_LONGEST_S = 10.0
_MOST_MODELLED = 200_000
"""Requests that the model serves for a rate."""
LEAST_PER_S = 1e-9
_MOST_SOLVED = 3
_TRIES = 12
_CLOSE = 0.01


@dataclass(frozen=True)
class FlashFit:
    """Parameters; times in µs, rates in 10^6 bytes a second, each with the interval of its repeats.

    Attributes:
        read_latency_us: mean random read of 4 KiB at depth 1, less the host's part.
        medium_latency_us: likewise, of a read of 16 KiB.
        write_latency_us: of a write of 4 KiB.
        read_cpu_us: the host's part of a read.
        write_cpu_us: likewise, of a write.
        unit_read_us: one unit's time for a read.
        unit_seen: whether that was measured; otherwise it is estimated from the latency.
        units: number of units that work in parallel.
        program_us: time that a unit is busy with a write of 4 KiB.
        read_iops: random reads at depth 64.
        half_deep_read_iops: likewise at depth 32.
        write_iops: random writes at depth 64.
        written_bytes: by a repeat of those.
        read_mb_per_s: large reads in sequence.
        write_mb_per_s: large writes in sequence.
        striped_reads: reads a second of 64 KiB, and of 1 MiB in sequence, by the name of their pattern.
        flush_us: with nothing to write.
        flush_after_write_us: right after a write.
        span_bytes: size of the probed span.
        bus_stripe_kib: consecutive bytes of a unit with a bus.
        units_on_bus: number of units that share a bus; 0 for units without one.
    """

    read_latency_us: Interval
    medium_latency_us: Interval
    write_latency_us: Interval
    read_cpu_us: float
    write_cpu_us: float
    unit_read_us: float
    unit_seen: bool
    units: int
    program_us: float
    read_iops: Interval
    half_deep_read_iops: Interval
    write_iops: Interval
    written_bytes: int
    read_mb_per_s: Interval
    write_mb_per_s: Interval
    striped_reads: Mapping[str, float]
    flush_us: float
    flush_after_write_us: float
    span_bytes: int
    bus_stripe_kib: int = 0
    units_on_bus: int = 0

    @property
    def units_bound_large_reads(self) -> bool:
        """Whether units with the least stripe do the rate of large reads: the link is not seen then."""
        return self.unit_seen and _is_alike(
            self.units * BLOCK_BYTES / self.unit_read_us, self.large_reads_mb_per_s
        )

    @property
    def longest_unit_read_us(self) -> float:
        """What a unit's read leaves of the latency is the link's, or a hundredth if the link is not seen."""
        measured_us = BLOCK_BYTES / self.large_reads_mb_per_s
        link_us = self._least_link_us if self.units_bound_large_reads else measured_us
        return max(self.read_latency_us.estimate - link_us - self.bus_us, _LEAST_US)

    @property
    def link_mb_per_s(self) -> float:
        """Rate of large reads, or of small ones if they are faster, or such that a read takes its latency."""
        if not self.units_bound_large_reads:
            return self.large_reads_mb_per_s
        left_us = max(self.read_latency_us.estimate - self.unit_read_us, self._least_link_us)
        return max(self.large_reads_mb_per_s, BLOCK_BYTES / left_us)

    @property
    def _least_link_us(self) -> float:
        return self.read_latency_us.estimate / 100

    @property
    def large_reads_mb_per_s(self) -> float:
        """Rate of large reads, or of small ones at depth 64 if they are faster."""
        return max(self.read_mb_per_s.estimate, self.read_iops.estimate * BLOCK_BYTES / 1e6)

    @property
    def link_write_mb_per_s(self) -> float:
        """Rate of large writes, or of small ones if they are faster."""
        return max(self.write_mb_per_s.estimate, self.write_iops.estimate * BLOCK_BYTES / 1e6)

    @property
    def least_stripe_kib(self) -> int:
        """Power of two such that large requests do their rates at depth 8."""
        return self._stripe_kib(
            self.read_mb_per_s.estimate * self.unit_read_us / self.units,
            self.write_mb_per_s.estimate * self.program_us / self.units,
        )

    @property
    def stripe_kib(self) -> int:
        """Consecutive bytes of a unit: without a bus, such that large reads also take their time alone."""
        if self.units_on_bus:
            return self.bus_stripe_kib
        if self.link_mb_per_s > self.large_reads_mb_per_s:
            return BLOCK_BYTES // 1024
        overhead_us = self.read_latency_us.estimate - self.unit_read_us
        alone_us = 1e6 / self.striped_reads["seq1m-q1t1-read"]
        rest_us = alone_us - overhead_us - _LARGE_BYTES / self.link_mb_per_s
        in_turn = max(rest_us / self.unit_read_us, 1)
        return max(self._stripe_kib(_LARGE_BYTES / self.units / in_turn), self.least_stripe_kib)

    def _stripe_kib(self, *at_least_bytes: float) -> int:
        kib = 2 ** math.ceil(math.log2(max(at_least_bytes) / 1024))
        return int(min(max(kib, BLOCK_BYTES // 1024), _MOST_STRIPE_KIB))

    @property
    def bus_us(self) -> float:
        """Time that a unit's bus takes for 4 KiB: what the link leaves of the longer time of 16 KiB."""
        if not self.units_on_bus:
            return 0.0
        on_one_unit = min(self.stripe_kib * 1024, _MEDIUM_BYTES) - BLOCK_BYTES
        link_us = (_MEDIUM_BYTES - BLOCK_BYTES) / self.link_mb_per_s
        longer_us = self.medium_latency_us.estimate - self.read_latency_us.estimate - link_us
        return max(longer_us, 0.0) * BLOCK_BYTES / on_one_unit if on_one_unit else 0.0

    @property
    def stripe_bus_us(self) -> float:
        """Time of a unit's bus for a stripe, which a program moves."""
        return self.bus_us * self.stripe_kib * 1024 / BLOCK_BYTES

    @property
    def busy_program_us(self) -> float:
        """Time that a unit is busy with a write: with the move of a stripe to all on its bus."""
        return max(self.program_us + self.stripe_bus_us, self.units_on_bus * self.stripe_bus_us)

    @property
    def protected(self) -> bool:
        """Whether a flush after a write does not wait for a program: whether it is nearer to one without."""
        return self.flush_after_write_us < self.flush_us + self.busy_program_us / 2


def fit_flash(
    target: _core.ProbeTarget,
    taken: Mapping[str, Sequence[PatternResult]],
    seconds: float,
    repeats: int,
    random: Random,
) -> FlashFit:
    """Fit from earlier pattern results and measure the missing ones, in about ``seconds``."""
    samples = dict(taken)
    for patterns, share in ((PATTERNS, 0.6), (_STRIPE_READS, 0.1)):
        missing = [pattern for pattern in patterns if pattern not in samples]
        samples |= sample_patterns(target, missing, repeats, share * seconds, random, lambda _: None)
    rates = {
        name: median_interval([sample.rate_per_s for sample in samples[name]])
        for name in (*PATTERNS, *_STRIPE_READS)
    }
    read_cpu_us, write_cpu_us = (
        _cpu_us(target, alone, rates[deep].estimate, random)
        for alone, deep in zip(PATTERNS[:2], PATTERNS[2:4], strict=True)
    )
    wait_until_device_settles(target, random)
    read = _latency(samples[PATTERNS[0]], read_cpu_us)
    each_s = 0.1 * seconds / repeats

    def median_of_repeats_us(mean_us: Callable[[], float]) -> float:
        return statistics.median(mean_us() for _ in range(repeats))

    same_us = median_of_repeats_us(lambda: _same_block_us(target, each_s))
    unit_us, seen = _unit_read_us(same_us, read.estimate, rates[_DEEP_READ].estimate)
    write = _latency(samples[PATTERNS[1]], write_cpu_us)
    flush_us = median_of_repeats_us(
        lambda: statistics.mean(request_times_us(target, empty_flushes(), each_s))
    )
    flush_us = max(flush_us - write_cpu_us, 0.0)
    cycle_us = median_of_repeats_us(lambda: _append_us(target, each_s, random))
    units = _units(rates[_DEEP_READ].estimate, unit_us)
    return FlashFit(
        read_latency_us=read,
        medium_latency_us=_latency(samples[_MEDIUM_READ], read_cpu_us),
        write_latency_us=write,
        read_cpu_us=read_cpu_us,
        write_cpu_us=write_cpu_us,
        unit_read_us=unit_us,
        unit_seen=seen,
        units=units,
        program_us=units / rates[_DEEP_WRITE].estimate * 1e6,
        read_iops=rates[_DEEP_READ],
        half_deep_read_iops=rates[_HALF_DEEP_READ],
        write_iops=rates[_DEEP_WRITE],
        written_bytes=min(sample.bytes for sample in samples[_DEEP_WRITE]),
        read_mb_per_s=median_interval([sample.mb_per_s for sample in samples["seq1m-q8t1-read"]]),
        write_mb_per_s=median_interval([sample.mb_per_s for sample in samples["seq1m-q8t1-write"]]),
        striped_reads={name: rates[name].estimate for name in _STRIPED_READS},
        flush_us=flush_us,
        flush_after_write_us=max(cycle_us - 2 * write_cpu_us - write.estimate, flush_us),
        span_bytes=target.size_bytes,
    )


def modelled_per_s(profile: str, pattern: str, measured_per_s: float, most_s: float = _LONGEST_S) -> float:
    """Requests a second of a pattern by the text of a profile, of which about as many were measured."""
    virtual_s = min(_MOST_MODELLED / max(measured_per_s, LEAST_PER_S), most_s)
    model = profiles.parse_profile(profile, Path("probed.toml"))
    return simulate_job(model, SimulationJob(preset=pattern, virtual_s=virtual_s)).iops


def fit_to_measured_rates(fit: FlashFit, text_of: Callable[[FlashFit], str]) -> FlashFit:
    """The fit whose profile, as ``text_of`` writes it, does the measured rates of random requests."""

    def per_s(fit: FlashFit, pattern: str, wanted: float) -> float:
        return modelled_per_s(text_of(fit), pattern, wanted)

    def solved(fit: FlashFit, pattern: str, wanted: float, name: str, most_us: float) -> FlashFit:
        for _ in range(_TRIES):
            ratio = per_s(fit, pattern, wanted) / wanted
            time_us = min(max(getattr(fit, name) * ratio, _LEAST_US), most_us)
            if abs(ratio - 1) < _CLOSE or time_us == getattr(fit, name):
                break
            fit = replace(fit, **{name: time_us})
        return fit

    def reads_met(fit: FlashFit) -> FlashFit:
        most_us = fit.longest_unit_read_us
        wanted = fit.read_iops.estimate
        fit = solved(fit, _DEEP_READ, wanted, "unit_read_us", most_us)
        # A unit is busy for no longer than a request takes: fewer of them do less.
        while fit.units > 1 and (rate := per_s(fit, _DEEP_READ, wanted)) > wanted * (1 + 2 * _CLOSE):
            # The rate rises by less than the number of units, so that this number is not too small.
            fewer = min(math.ceil(fit.units * wanted / rate), fit.units - 1)
            fit = solved(replace(fit, units=fewer), _DEEP_READ, wanted, "unit_read_us", most_us)
        # Fewer units with shorter reads leave less idle at lower depths.
        half = min(fit.half_deep_read_iops.estimate, wanted)
        while (
            not fit.unit_seen
            and fit.units > 1
            and per_s(fit, _HALF_DEEP_READ, half) < half * (1 - 2 * _CLOSE)
        ):
            less = replace(fit, units=fit.units * 2 // 3)
            fit = solved(less, _DEEP_READ, wanted, "unit_read_us", most_us)
        return fit

    def apart(fit: FlashFit) -> float:
        text = text_of(fit)
        return sum(
            math.log(modelled_per_s(text, pattern, rate, _STRIPED / rate) / rate) ** 2
            for pattern, rate in fit.striped_reads.items()
        )

    def met(fit: FlashFit) -> FlashFit:
        fit = reads_met(fit)
        wanted = fit.write_iops.estimate
        program_us = max(fit.units / wanted * 1e6 - fit.stripe_bus_us, _LEAST_US)
        return solved(replace(fit, program_us=program_us), _DEEP_WRITE, wanted, "program_us", math.inf)

    def all_apart(fit: FlashFit) -> float:
        wanted = fit.write_iops.estimate
        return apart(fit) + math.log(per_s(fit, _DEEP_WRITE, wanted) / wanted) ** 2

    plain = met(fit)
    nearest = sorted(_striped(plain), key=apart)[:_MOST_SOLVED]
    return min([plain, *map(met, nearest)], key=all_apart) if nearest else plain


def _striped(fit: FlashFit) -> list[FlashFit]:
    """A fit without a bus, with each stripe and number of units on a bus that leave time for its programs."""
    if fit.link_mb_per_s > fit.large_reads_mb_per_s:
        return []
    fits = [
        replace(fit, bus_stripe_kib=2**power, units_on_bus=shared)
        for power in range(3, 11)
        for shared in (1, 2, 4, 8)
        if 2**power >= fit.least_stripe_kib and shared <= fit.units
    ]
    return [
        each
        for each in fits
        if 0 < each.stripe_bus_us < 0.9 * fit.program_us
        and each.units_on_bus * each.stripe_bus_us < 1.1 * fit.program_us
    ]


def _is_alike(a: float, b: float) -> bool:
    return 0.8 < a / b < 1.25


def _cpu_us(target: _core.ProbeTarget, alone: str, deep_per_s: float, random: Random) -> float:
    """Processor time of the host for a request.

    That of a request alone may pass while the device works, as in a guest that hands it to the hypervisor.
    What the requests of depth 64 took each is a bound: one thread serves them all.
    """
    threads = 1 if target.engine == "io_uring" else executor.usable_processors()
    return min(host_cpu_us(target, alone, _HOST_CPU_S, random.getrandbits(32)), threads / deep_per_s * 1e6)


def _latency(alone: Sequence[PatternResult], cpu_us: float) -> Interval:
    """From one request to the next, less the processor time."""
    return median_interval([max(1e6 / sample.rate_per_s - cpu_us, _LEAST_US) for sample in alone])


def _same_block_us(target: _core.ProbeTarget, seconds: float) -> float:
    """Mean time between the ends of reads of the first block by several readers; 0 if one ended."""
    same = [("R", 0, BLOCK_BYTES)] * 100_000
    done = target.trace(same, _SAME_BLOCK_READERS, max(seconds, _LEAST_READING_S))
    ends_us = sorted(end_ns / 1e3 for _, _, end_ns in done)
    return (ends_us[-1] - ends_us[0]) / (len(ends_us) - 1) if len(ends_us) > 1 else 0.0


def _append_us(target: _core.ProbeTarget, seconds: float, random: Random) -> float:
    """Mean time from one flush to the next, each after an append of one block."""
    ends_us = flush_ends_us(target, flushed_appends(target, BLOCK_BYTES, random), seconds)
    return float(ends_us[-1] - ends_us[0]) / (len(ends_us) - 1)


def _unit_read_us(same_us: float, latency_us: float, deep_per_s: float) -> tuple[float, bool]:
    """Read time of one unit, and whether it was measured."""
    limited = _is_alike(same_us * deep_per_s, 1e6)
    seen = same_us <= latency_us and (limited or same_us > 0.3 * latency_us)
    return (same_us, True) if seen else (0.8 * latency_us, False)


def _units(read_iops: float, unit_us: float) -> int:
    """Units in parallel, from the rate of ``_READERS`` readers."""
    busy = read_iops * unit_us / 1e6
    idle = min(_IDLE_FACTOR * busy / _READERS, 0.9)
    return min(max(round(busy / (1 - idle)), 1), _MOST_UNITS)
