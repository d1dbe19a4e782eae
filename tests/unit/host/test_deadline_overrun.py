"""How much longer an emulated device's deadline overrun can have made a run."""

from __future__ import annotations

import pytest

from tierwise.host.disk.disk import DiskStats, PartitionStats
from tierwise.lab.studies.runner.run_storage import deadline_overrun_of
from tierwise.results import Latency


def latency(count: int, mean_us: float) -> Latency:
    return Latency(
        count=count,
        mean_us=mean_us,
        p50_us=mean_us,
        p95_us=mean_us,
        p99_us=mean_us,
        p999_us=mean_us,
        max_us=mean_us,
    )


def partition(name: str, busy_s: float) -> PartitionStats:
    counts = dict.fromkeys(("size_bytes", "reads", "writes", "flushes", "discards", "queue_depth_max"), 0)
    return PartitionStats(
        name=name, device="", mount="", file_system="ext4", read_bytes=0, write_bytes=0, busy_s=busy_s,
        queue_depth_mean=0.0, read_latency=None, write_latency=None, flush_latency=None, **counts,
    )  # fmt: skip


def stats(queue_depth_mean: float, *busy_s: float) -> DiskStats:
    """10 s, 1,000 requests, each 1 ms late: a second in all."""
    return DiskStats(
        name="disk", profile="p", kind="hdd", server_pid=1, owner_pid=1, elapsed_s=10.0, cpu_s=0.0,
        path_us=8.0, transport="fuse", queue_depth_mean=queue_depth_mean, queue_depth_max=0,
        deadline_overrun=latency(1000, 1000.0), errors=0, unflushed_bytes=0, write_amplification=None,
        warnings=[], attainable=[],
        partitions={str(n): partition(str(n), busy) for n, busy in enumerate(busy_s)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "share"),
    [
        (stats(0.5, 5.0), 0.1),  # one request at a time, half of the time
        (stats(8.0, 10.0), 0.1 / 8),  # eight at a time: all eight are late together
        (stats(4.0, 5.0), 0.1 / 8),  # the same, half of the time
        (stats(2.0, 5.0, 5.0), 0.1 / 2),  # partitions that may have been busy one after the other
        (stats(0.0, 0.0), 0.1),  # not known: each counts in full
    ],
)
def test_requests_that_are_late_side_by_side_count_once(made: DiskStats, share: float) -> None:
    overrun = deadline_overrun_of(made, elapsed_s=10.0)
    assert overrun
    assert overrun.share == pytest.approx(share)
