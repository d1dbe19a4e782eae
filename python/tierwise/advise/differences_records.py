"""How the conditions of a recording after a move may differ from those of the forecast."""

from __future__ import annotations

from typing import Literal

from tierwise.model.placement import Role
from tierwise.results.measurements import Record

Kind = Literal["clients", "arrivals", "cores", "memory", "placement", "device"]


class Difference(Record):
    """One condition that is not as the forecast has it."""

    kind: Kind
    """What differs."""
    role: Role | None = None
    """Of a misplaced file, or the role whose device makes most of the difference."""
    predicted: float | str
    """Clients, arrivals a second, cores, bytes of memory; the device of a placement; µs a request."""
    measured: float | str
    """The same in the recording after."""
    rate_per_s: float | None
    """Rate of the recording after, replayed with this difference undone; ``None`` if a replay cannot."""
    closes: float | None
    """Share of the gap between measured and predicted rate that this closes; above 1 it goes beyond."""


class RoleTimes(Record):
    """Time that its device was busy for each request of a role, in µs."""

    role: Role
    """Role of the files."""
    device: str
    """In the forecast."""
    predicted_us: float | None
    """In the forecast, with its load."""
    measured_us: float | None
    """In the recording after."""
    simulated_us: float | None
    """On the forecast's simulated device, with the load of the recording after; ``None`` if not moved."""


class WorkChange(Record):
    """A part of a transaction's work that is not as it was."""

    what: Literal["requests", "processor time", "reads", "writes", "flushes", "bytes written"]
    """``requests`` of the client; reads, writes, flushes and bytes are those of a role at its device."""
    role: Role | None
    """``None`` for requests of the client and processor time."""
    predicted: float
    """For each transaction, in the forecast; processor time in µs."""
    measured: float
    """The same in the recording after."""
