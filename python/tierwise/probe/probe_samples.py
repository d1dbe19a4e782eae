"""Samples of patterns and of flushes, interleaved so that machine drift affects all equally."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from tierwise import _core
from tierwise.model.executor import ProgressCallback
from tierwise.model.extras import np
from tierwise.results.measurements import FlushTimes, PatternResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

Request = tuple[str, int, int]
"""Operation (R, W or F), first byte, size in bytes."""

BLOCK_BYTES = 4096

CRYSTALDISKMARK = {
    f"{title} {direction}": f"{title.lower().replace(' ', '-')}-{direction}"
    for direction in ("read", "write")
    for title in ("SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1")
}
"""Output lines of CrystalDiskMark 8, with the names of their patterns."""

_FLUSH_CYCLES = 400
_REST_S = 0.1
_LONGEST_REST_S = 2.0
_PATIENCE_S = 60.0


def run_pattern(target: _core.ProbeTarget, pattern: str, seconds: float, seed: int) -> PatternResult:
    """Run one pattern for a time."""
    return PatternResult.model_validate_json(target.measure(pattern, seconds, seed))


def interleaved_repeats(names: Sequence[str], repeats: int, random: Random) -> Iterator[str]:
    """Each name ``repeats`` times: rounds of all names in random order, with reads always before writes.

    A write leaves work in the device that would slow later reads.
    """
    for _ in range(repeats):
        yield from sorted(random.sample(list(names), len(names)), key=lambda name: "read" not in name)


def sample_patterns(
    target: _core.ProbeTarget,
    patterns: Sequence[str],
    repeats: int,
    seconds: float,
    random: Random,
    progress: ProgressCallback,
) -> dict[str, list[PatternResult]]:
    """Repeats of every pattern, ``seconds`` in all."""
    taken: dict[str, list[PatternResult]] = {pattern: [] for pattern in patterns}
    each_s = seconds / max(len(patterns) * repeats, 1)
    wrote = True
    for pattern in interleaved_repeats(patterns, repeats, random):
        progress(pattern)
        if wrote and "read" in pattern:
            wait_until_device_settles(target, random)
        wrote = "read" not in pattern
        taken[pattern].append(run_pattern(target, pattern, each_s, random.getrandbits(32)))
    return taken


def wait_until_device_settles(target: _core.ProbeTarget, random: Random) -> None:
    """Wait until the device has finished the work left by writes: until reads no longer get faster.

    Stops waiting after two seconds.
    """
    target.trace([("F", 0, 0)], 1, _LONGEST_REST_S)
    deadline = time.monotonic() + _LONGEST_REST_S
    before = float("inf")
    while time.monotonic() < deadline:
        now = median_request_us(target, random_requests(target, "R", BLOCK_BYTES, random)[:8], _REST_S)
        if now > 0.9 * before:
            return
        before = now
        time.sleep(_REST_S)


def sample_flush(target: _core.ProbeTarget, seconds: float, random: Random) -> FlushTimes:
    """One sample of writes with and without a flush, one request at a time, ``seconds`` in all."""
    each_s = seconds / 7
    wait_until_device_settles(target, random)
    return FlushTimes(
        random_read_us=median_request_us(target, random_requests(target, "R", 4096, random), each_s),
        write_4k_us=median_request_us(target, random_requests(target, "W", 4096, random), each_s),
        write_flush_4k_us=median_flush_cycle_us(target, flushed_appends(target, 4096, random), each_s),
        write_8k_us=median_request_us(target, random_requests(target, "W", 8192, random), each_s),
        write_flush_8k_us=median_flush_cycle_us(target, flushed_appends(target, 8192, random), each_s),
        flush_us=median_request_us(target, empty_flushes(), each_s),
        rewrite_us=median_flush_cycle_us(target, flushed_rewrites(), each_s),
    )


def median_times(samples: Sequence[FlushTimes]) -> FlushTimes:
    """Median of each time over repeats."""
    names = FlushTimes.model_fields
    return FlushTimes(
        **{name: statistics.median(getattr(sample, name) for sample in samples) for name in names}
    )


def random_requests(target: _core.ProbeTarget, op: str, size_bytes: int, random: Random) -> list[Request]:
    """Requests of one kind at random places in the target."""
    blocks = target.size_bytes // size_bytes
    return [(op, random.randrange(blocks) * size_bytes, size_bytes) for _ in range(_FLUSH_CYCLES)]


def flushed_appends(target: _core.ProbeTarget, size_bytes: int, random: Random) -> list[Request]:
    """Sequential writes from a random place in the target, each with a flush."""
    length = _FLUSH_CYCLES * size_bytes
    start = random.randrange(max((target.size_bytes - length) // BLOCK_BYTES, 1)) * BLOCK_BYTES
    count = min(_FLUSH_CYCLES, (target.size_bytes - start) // size_bytes)
    return [
        request
        for number in range(count)
        for request in (("W", start + number * size_bytes, size_bytes), ("F", 0, 0))
    ]


def empty_flushes() -> list[Request]:
    """Flushes with nothing to write."""
    return [("F", 0, 0)] * _FLUSH_CYCLES


def flushed_rewrites() -> list[Request]:
    """Repeated writes of the first block, each with a flush."""
    return [("W", 0, BLOCK_BYTES), ("F", 0, 0)] * _FLUSH_CYCLES


def host_cpu_us(target: _core.ProbeTarget, pattern: str, seconds: float, seed: int) -> float:
    """Processor time for a request of a pattern: of the kernel and the probe."""
    before_s = time.process_time()
    done = run_pattern(target, pattern, seconds, seed)
    return (time.process_time() - before_s) * 1e6 / max(done.requests, 1)


def request_times_us(target: _core.ProbeTarget, requests: Sequence[Request], seconds: float) -> list[float]:
    """Time of each request, one at a time, in order, until the time is over; at least one."""
    done = target.trace(requests, 1, seconds) or target.trace(requests[:1], 1, _PATIENCE_S)
    return [(end_ns - start_ns) / 1e3 for _, start_ns, end_ns in done]


def median_request_us(target: _core.ProbeTarget, requests: Sequence[Request], seconds: float) -> float:
    """Median time of one request, in µs."""
    return statistics.median(request_times_us(target, requests, seconds))


def median_flush_cycle_us(target: _core.ProbeTarget, pairs: Sequence[Request], seconds: float) -> float:
    """Median time from one flush to the next, in µs: one whole cycle of a write and its flush."""
    return float(np.median(np.diff(flush_ends_us(target, pairs, seconds))))


def flush_ends_us(target: _core.ProbeTarget, pairs: Sequence[Request], seconds: float) -> NDArray[np.float64]:
    """End time of each flush in alternating writes and flushes, two or more, in µs."""
    done = target.trace(pairs, 1, seconds)
    if len(done) < 4:
        done = target.trace(pairs[:4], 1, _PATIENCE_S)
    return np.array([end_ns for number, _, end_ns in done if number % 2], dtype=np.float64) / 1e3
