"""Measurements of a device: latencies, patterns, and whether its flush can make data durable."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of every part of a result: immutable, and no unknown field."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Latency(Record):
    """Distribution of a latency, from a high dynamic range histogram."""

    count: int
    mean_us: float
    p50_us: float
    p95_us: float
    p99_us: float
    p999_us: float
    max_us: float

    @property
    def figures_us(self) -> tuple[float, ...]:
        """The mean, the percentiles and the maximum, in this order."""
        return self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.p999_us, self.max_us


class PatternResult(Record):
    """Results of one access pattern on one device. Flushes are counted apart from ``requests``."""

    requests: int
    """Reads and writes."""
    bytes: int
    elapsed_s: float
    read: Latency | None = None
    write: Latency | None = None
    flush: Latency | None = None

    @property
    def rate_per_s(self) -> float:
        """Reads and writes a second."""
        return self.requests / self.elapsed_s

    @property
    def mb_per_s(self) -> float:
        """Transferred, in 10^6 bytes a second."""
        return self.bytes / self.elapsed_s / 1e6


FlushVerdict = Literal["honest", "cannot have reached the medium", "cannot tell"]


class FlushTimes(Record):
    """Medians of one measurement of writes and flushes, one request at a time, in µs."""

    write_4k_us: float
    """A write of 4 KiB at random, without a flush."""
    write_flush_4k_us: float
    """An append of 4 KiB and the flush after it, together."""
    write_8k_us: float
    write_flush_8k_us: float
    flush_us: float
    """A flush after nothing was written."""
    rewrite_us: float
    """The same 4 KiB written and flushed again and again: on a disk, a revolution each."""
    random_read_us: float
    """A read of 4 KiB at random, which tells the class of the device."""


class FlushCheck(Record):
    """Whether a flush that returned can have made data durable, with the reasons."""

    verdict: FlushVerdict
    reasons: list[str]
    times: FlushTimes
    device_class: Literal["disk", "flash", "memory"]
    write_cache: str | None = None
    """What the kernel reports: ``write back`` (volatile, flushed) or ``write through`` (no flush is sent)."""
    fua: bool | None = None
