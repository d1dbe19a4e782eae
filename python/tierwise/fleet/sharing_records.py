"""Logs of several databases on shared devices, as records."""

from __future__ import annotations

from tierwise.fleet.moves import DatabaseMove
from tierwise.model.placement import Role
from tierwise.predict import Estimate
from tierwise.results.measurements import Record


class SharedDatabase(Record):
    """One database whose log is on a shared device."""

    database: str
    roles: list[Role]
    """Roles on it, the log among them."""
    unit: str
    """What rates count."""
    rate_alone_per_s: Estimate | None
    """With a device of its own."""
    rate_per_s: Estimate | None
    """With the others at work on the shared device."""
    kept: Estimate
    """The second over the first; the interval is the range over the seeds."""
    p99_alone_us: Estimate | None
    """99th percentile of the latency with a device of its own, in microseconds."""
    p99_us: Estimate | None
    """The same on the shared device."""


class SharedDevice(Record):
    """One device for the logs of several databases."""

    name: str
    """With its number, as in a placement: ``ssd-nvme-dc#1``."""
    databases: list[SharedDatabase]
    """Those whose logs are on it."""
    size_bytes: int
    """Of the recorded files on it."""
    cost_per_month: float
    """Of the one device."""
    separate_cost_per_month: float
    """Of a device for each database."""
    saved_per_month: float
    """The second less the first."""


class SeparateLog(Record):
    """A log that has a new device to itself."""

    database: str
    device: str
    reason: str
    """Why it shares none."""


class FleetSharing(Record):
    """The best set with the logs that it moves packed on shared devices, and what the saved money buys."""

    least_kept: float
    """Share of its rate that each database keeps at least, under every seed."""
    most_databases: int
    """Most databases on one device."""
    devices: list[SharedDevice]
    separate: list[SeparateLog]
    """Logs on new devices that are not shared."""
    saved_per_month: float
    """By all shared devices, over a device for each of their databases."""
    cost_per_month: float
    """Of the whole set, more than is paid now."""
    gain: float
    """Of the whole set, with what sharing costs in speed."""
    gain_share: float | None
    """Over the gain of the best set without a budget; null if nothing could be gained."""
    begun: list[DatabaseMove]
    """Moves that the best set without sharing does not have."""
    ended: list[DatabaseMove]
    """Moves of that set that this one does not have."""
    replays: int
    """Joint replays that were made."""
