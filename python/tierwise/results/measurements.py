"""Counts of a run or a lap, and measurements of a device.

Counters are totals over the measured time. A value that an engine or a device cannot report is ``None``,
never zero.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NotNegative = Annotated[float, Field(ge=0)]
NotNegativeCount = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1 + 1e-9)]  # a weighted mean is rounded


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


OneLine = Annotated[str, AfterValidator(_one_line)]
"""A message of an engine or a program, whose lines are one sentence of a report."""

WaitClass = Literal["cpu", "log_sync", "log_lock", "data_read", "data_write", "lock", "client", "other"]
"""Where a session's time goes. ``cpu`` is running or runnable; ``client`` is waiting for the next request."""


class StrictModel(BaseModel):
    """Base of every part of a result: immutable, and no unknown field."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    def changed(self, **fields: Any) -> Self:
        """A copy with other values of some fields, which are validated, unlike those of ``model_copy``."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**given, **fields})


class TolerantModel(BaseModel):
    """Base of what the compiled core, or a newer tierwise, writes: immutable; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class Counters(StrictModel):
    """The engine's own counters, under the names that all engines share.

    Logical reads are pages asked of the engine's buffer. Physical reads and writes are the engine's requests
    to the operating system for data, index and system pages, without log and temporary files; one request may
    be for several pages.
    """

    cpu_s: NotNegative | None = None
    """CPU seconds of the server and all its processes, ended ones included."""
    log_bytes: NotNegativeCount | None = None
    """Log generated, including full-page images."""
    doublewrite_bytes: NotNegativeCount | None = None
    """Pages written a second time against torn writes: page images in the log, doublewrite, journal."""
    logical_reads: NotNegativeCount | None = None
    physical_reads: NotNegativeCount | None = None
    pages_read: NotNegativeCount | None = None
    physical_writes: NotNegativeCount | None = None
    pages_written: NotNegativeCount | None = None
    temp_bytes: NotNegativeCount | None = None
    """Written to temporary files."""
    page_bytes: NotNegativeCount | None = None
    """Size of a page; all other fields are totals."""
    commits: NotNegativeCount | None = None

    def since(self, before: Counters) -> Counters:
        """The counts between two readings of one server; ``None`` for one that was reset between them."""
        return Counters(
            page_bytes=self.page_bytes,
            **{
                name: None if now is None or then is None or now < then else now - then
                for (name, now), (_, then) in zip(self, before, strict=True)
                if name != "page_bytes"
            },
        )


class RoleProof(StrictModel):
    """Evidence that one role's files were on the device that the placement names.

    ``share`` is ``reached_bytes / written_bytes``, at most 1. If the engine counts its writes for the role
    (log, temporary files), both cover the measured phase. For any other role ``written_bytes`` is the size of
    its files on disk at the end, and ``reached_bytes`` counts from the creation of the device. Files deleted
    before the kernel wrote them out reach no device, so only a log, which is flushed, must have a share near
    1.
    """

    device: str
    reached_bytes: NotNegativeCount | None = None
    """Bytes written to the role's partition, or to a whole real device, by the kernel's counters."""
    written_bytes: NotNegativeCount | None = None
    share: Share | None = None
    files: NotNegativeCount
    """Files of the role that were seen, open or on disk."""
    strays: list[str] = []
    """Files of the role that were seen elsewhere; a run with one has failed."""


class RoleIo(StrictModel):
    """I/O of one role on its device during the measured phase."""

    device: str
    reads: NotNegativeCount
    writes: NotNegativeCount
    flushes: NotNegativeCount | None
    """``None`` if roles share a real device: a flush covers all of it and is in its ``unattributed``."""
    discards: NotNegativeCount | None = None
    read_bytes: NotNegativeCount
    write_bytes: NotNegativeCount
    busy_s: NotNegative | None = None
    queue_depth_mean: NotNegative | None = None
    read_latency: Latency | None = None
    write_latency: Latency | None = None
    flush_latency: Latency | None = None


class UntracedIo(RoleIo):
    """What the kernel counts of a device less what is traced; may be negative."""

    reads: int
    writes: int
    discards: int | None = None
    read_bytes: int
    write_bytes: int


class WaitShare(StrictModel):
    """Share of session time in one class, and the half-width of its 95 % interval from sampling."""

    share: Share
    sampling_error: NotNegative


class WaitProfile(StrictModel):
    """Sampled states of the load's sessions.

    ``shares`` add up to 1. ``samples`` counts sessions seen; ``ticks`` counts the sampling moments. Classes
    of waits: ``cpu`` (running or runnable), ``log_sync``, ``log_lock``, ``data_read``, ``data_write``,
    ``lock``, ``client`` (waiting for the next request), ``other``.
    """

    ticks: NotNegativeCount
    samples: NotNegativeCount
    rate_hz: NotNegative
    shares: dict[WaitClass, WaitShare]


class CpuUse(StrictModel):
    """CPU seconds during the measured phase. ``other_s`` is the rest."""

    engine_s: NotNegative
    clients_s: NotNegative
    disks_s: NotNegative | None = None
    other_s: NotNegative | None = None


class Latency(StrictModel):
    """Distribution of a latency, from a high dynamic range histogram."""

    count: NotNegativeCount
    mean_us: NotNegative
    p50_us: NotNegative
    p95_us: NotNegative
    p99_us: NotNegative
    p999_us: NotNegative
    max_us: NotNegative

    @property
    def figures_us(self) -> tuple[float, ...]:
        """The mean, the percentiles and the maximum, in this order."""
        return self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.p999_us, self.max_us


class PatternResult(StrictModel):
    """Results of one access pattern on one device. Flushes are counted apart from ``requests``."""

    requests: NotNegativeCount
    """Reads and writes."""
    bytes: NotNegativeCount
    elapsed_s: float = Field(gt=0)
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


class FlushTimes(StrictModel):
    """Medians of one measurement of writes and flushes, one request at a time, in µs."""

    write_4k_us: NotNegative
    """A write of 4 KiB at random, without a flush."""
    write_flush_4k_us: NotNegative
    """An append of 4 KiB and the flush after it, together."""
    write_8k_us: NotNegative
    write_flush_8k_us: NotNegative
    flush_us: NotNegative
    """A flush after nothing was written."""
    rewrite_us: NotNegative
    """The same 4 KiB written and flushed again and again: on a disk, a revolution each."""
    random_read_us: NotNegative
    """A read of 4 KiB at random, which tells the class of the device."""


class FlushCheck(StrictModel):
    """Whether a flush that returned can have made data durable, with the reasons."""

    verdict: FlushVerdict
    reasons: list[str]
    times: FlushTimes
    device_class: Literal["disk", "flash", "memory"]
    write_cache: str | None = None
    """What the kernel reports: ``write back`` (volatile, flushed) or ``write through`` (no flush is sent)."""
    fua: bool | None = None
