"""Counters of an emulated disk since their last reset."""

from __future__ import annotations

import math
from typing import Any

from tierwise.host import ledger
from tierwise.results import AttainableRate, Latency, Record


class PartitionStats(Record):
    """Counters of one partition. Bytes and times are totals; depths are numbers of requests in flight."""

    name: str
    loop: str
    mount: str
    file_system: str
    size_bytes: int
    reads: int
    writes: int
    flushes: int
    discards: int
    read_bytes: int
    write_bytes: int
    busy_s: float
    queue_depth_mean: float
    queue_depth_max: int
    read_latency: Latency | None
    write_latency: Latency | None
    flush_latency: Latency | None


class DiskStats(Record):
    """Counters of one emulated disk.

    ``deadline_overrun`` is how long after its deadline the server answered each request; ``None`` before the
    first. ``transport`` is the way of requests to the server, and ``path_us`` the latency of it and the loop
    device that the server compensates. ``errors`` counts failed
    requests. ``unflushed_bytes`` were completed and would be lost if the power failed now.
    ``write_amplification`` is that of the model since the disk came up, or ``None`` if it has none.
    ``warnings`` list resources that a server needs to be on time and that the system refused. ``attainable``
    is what this machine can emulate of the device, measured when the disk came up.
    """

    name: str
    profile: str
    kind: str
    server_pid: int
    owner_pid: int
    elapsed_s: float
    cpu_s: float
    transport: str
    path_us: float
    queue_depth_mean: float
    queue_depth_max: int
    deadline_overrun: Latency | None
    errors: int
    unflushed_bytes: int
    write_amplification: float | None
    warnings: list[str]
    attainable: list[AttainableRate]
    partitions: dict[str, PartitionStats]

    @property
    def busy_depth(self) -> float:
        """Lower bound of the mean queue depth while busy, at least 1.

        Partitions may be busy at different times, so the device was busy for at most the sum of their times.
        """
        busy_s = min(self.elapsed_s, sum(part.busy_s for part in self.partitions.values()))
        return max(1.0, self.queue_depth_mean * self.elapsed_s / busy_s) if busy_s > 0 else 1.0

    @property
    def path_share(self) -> float | None:
        """Share of the requests' time that the path took, by ``attainable`` at the mean depth while busy."""
        served = [
            latency
            for part in self.partitions.values()
            for latency in (part.read_latency, part.write_latency, part.flush_latency)
            if latency is not None
        ]
        count = sum(latency.count for latency in served)
        if not count or not self.attainable:
            return None
        nearest = min(self.attainable, key=lambda rate: abs(math.log(rate.depth / self.busy_depth)))
        mean_us = sum(latency.count * latency.mean_us for latency in served) / count
        return nearest.longer_us / (nearest.longer_us + mean_us)

    @property
    def overrun_p50_us(self) -> float:
        """Median deadline overrun, or 0 before the first request."""
        return self.deadline_overrun.p50_us if self.deadline_overrun else 0.0

    @property
    def overrun_p99_us(self) -> float:
        """99th percentile of the deadline overrun, or 0 before the first request."""
        return self.deadline_overrun.p99_us if self.deadline_overrun else 0.0

    @property
    def overrun_max_us(self) -> float:
        """Greatest deadline overrun, or 0 before the first request."""
        return self.deadline_overrun.max_us if self.deadline_overrun else 0.0


def from_answer(entry: ledger.Entry, answer: dict[str, Any]) -> DiskStats:
    """Combine the server's counters with the facts in the ledger."""
    facts, device = entry.facts, answer["stats"]
    placed = {partition["name"]: partition for partition in facts["partitions"]}
    partitions = {counted["name"]: {**counted, **placed[counted["name"]]} for counted in device["partitions"]}
    return DiskStats.model_validate(
        {
            **device,
            "name": entry.name,
            "profile": facts["profile"],
            "kind": facts["model"],
            "server_pid": facts["server"]["pid"],
            "owner_pid": entry.owner.pid,
            "warnings": answer["warnings"],
            "attainable": facts.get("attainable", []),
            "partitions": partitions,
        }
    )
