"""Output of the simulator, in its own form: the work of a recording, and outcomes of scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tierwise.model.placement import Role
from tierwise.predict.scenario import Scenario
from tierwise.results.measurements import TolerantModel

DEVICES = ("log_device", "log_queue", "read", "write")
"""Parts of the sessions' time that devices decide."""
CHANCE = 0.03
"""Error of the rate that chance explains: quiet runs of the same client and server differ by 0.1 to 3 %."""


def time_share(shares: Mapping[str, float], parts: Sequence[str]) -> float:
    """Share of the sessions' time that went to any of these."""
    return sum(shares.get(part, 0.0) for part in parts)


def computing_share(shares: Mapping[str, float], demands: Demands) -> float:
    """Share of the sessions' time on processors or waiting for one, of server and client.

    Its rise from the recorded run to a prediction is how far the predicted rate depends on processor time
    under conditions that the recording does not show: in a closed network, d ln(rate) / d ln(processor time)
    is this share with its sign changed. Assumption: of the time in which a session waits for its client, the
    client computes for the same part as in the recording.
    """
    away_us = demands.client_cpu_us + demands.think_us
    client = demands.client_cpu_us / away_us if away_us > 0 else 0.0
    return time_share(shares, ("cpu", "runnable")) + client * shares.get("client", 0.0)


class SimulatedLatency(TolerantModel):
    """Percentiles of the latency of transactions, in µs."""

    p50_us: float
    p95_us: float
    p99_us: float

    @property
    def percentiles_us(self) -> tuple[float, float, float]:
        """The median, 95th and 99th."""
        return self.p50_us, self.p95_us, self.p99_us


class SimulatedRoleIo(TolerantModel):
    """I/O of one role on its device in the counted time."""

    role: Role
    reads: int
    writes: int
    flushes: int
    read_bytes: int
    written_bytes: int
    busy_s: float


class SimulationOutcome(TolerantModel):
    """One scenario under one seed."""

    elapsed_s: float
    """Virtual time that was counted."""
    turns: int
    transactions: int
    latency: SimulatedLatency
    shares: dict[str, float]
    """Share of the sessions' time by what it went to; they sum to 1."""
    commits_per_flush: float
    busy_share: float
    io: list[SimulatedRoleIo]
    waiting: int = 0
    """Transactions that had arrived and waited for a session at the end."""
    warnings: list[str]
    alternatives: list[float] = []
    """Speed-ups over this one under other assumptions, which the intervals contain; of an observation."""


class RecordedFigures(TolerantModel):
    """Figures of the recording itself."""

    turns_per_s: float
    transactions_per_s: float
    counted_per_shown: float | None = None
    """Counted transactions for each one that the events show: the rate above follows the count."""
    sliced: bool = False
    """Whether transactions are slices of time, as the events show hardly a request or a commit."""
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    arrive: bool = False
    """Whether transactions arrive by a schedule of their own, rather than when a client got its answer."""
    shares: dict[str, float] = {}


class RecordedDevice(TolerantModel):
    """A device of the recorded machine."""

    profile: str | None
    """Name of its profile if it was an emulated one."""
    roles: list[Role]


class TransactionWait(TolerantModel):
    """One wait of a transaction in the recording, in µs."""

    category: str
    """As in shares of time."""
    role: Role | None = None
    """Role of the file, if the wait was for one."""
    time_us: float


_CPU_TIMES = ("client_cpu_us", "server_cpu_us", "flush_cpu_us")


class Demands(TolerantModel):
    """Demands and waits of a transaction in the recording, in µs, without the cost of recording."""

    think_us: float = 0.0
    """Outside of the machine."""
    client_cpu_us: float = 0.0
    server_cpu_us: float = 0.0
    flush_cpu_us: float = 0.0
    """Further processor time, for its share of the log's flushes."""
    reads: dict[Role, float] = {}
    """Calls that read from a device, by role."""
    waits: list[TransactionWait] = []

    @property
    def cpu_us(self) -> float:
        """Processor time of client and server, without the log's flushes."""
        return self.client_cpu_us + self.server_cpu_us

    def with_cpu_times(self, scale: float) -> Demands:
        """The same with all processor times multiplied."""
        times = {name: getattr(self, name) * scale for name in _CPU_TIMES}
        return self.model_copy(update=times)

    def shared_by(self, requests: float) -> Demands:
        """The demands of one request, if a transaction has ``requests`` requests."""
        times = {name: value / requests for name, value in self if isinstance(value, float)}
        waits = [wait.model_copy(update={"time_us": wait.time_us / requests}) for wait in self.waits]
        reads = {role: count / requests for role, count in self.reads.items()}
        return self.model_copy(update=times | {"waits": waits, "reads": reads})


class PageCache(TolerantModel):
    """Memory that held pages of files, inferred from their reads."""

    likely_bytes: int = 0
    unexplained: float = 0.0
    """Share of the reads that an LRU cache of any size does not explain."""
    engine_bytes: int = 0
    """The engine's own buffer, by its settings."""
    passed: bool = False
    """Whether the engine bypasses the page cache for its files."""


class UnassignedFile(TolerantModel):
    """A file without a role that the database flushes or waits for."""

    path: str
    flush_share: float
    """Its part of all flushes."""
    wait_share: float
    """Its part of all waits in calls on files."""
    is_like_log: bool = False
    """Whether it is written in order and flushed, as a log is."""


class WorkSummary(TolerantModel):
    """Demands of the recorded run on its machine."""

    cores: int
    memory_bytes: int
    sessions: int
    """Client sessions."""
    turns: int
    transactions: int
    span_s: float
    once: bool
    """Whether turns are too long to be repeated: the work is done once, and timed from begin to end."""
    footprints: dict[Role, int]
    """Bytes of the files of every role that was seen."""
    commit_delay_us: float | None = None
    """Wait of a flush's leader for more commits, if the engine has one: no device shortens it."""
    devices: list[RecordedDevice]
    observed: RecordedFigures
    demands: Demands = Demands()
    can_change_memory: bool
    memory_reason: str
    """Why memory cannot be changed, if it cannot."""
    page_cache: PageCache = PageCache()
    unassigned: list[UnassignedFile] = []
    """Files without a role that take a part of the flushes or waits; predictions leave them out."""
    limits: list[str]
    """Limits of the recording, as sentences."""
    from_waits: bool = False
    """Whether it comes from sampled waits alone, without events of the kernel."""

    @property
    def chance(self) -> float:
        """Error of the recorded rate that chance explains: twice the standard error of a Poisson count."""
        return max(CHANCE, 2.0 / math.sqrt(max(self.transactions, 4)))

    def arrivals_per_s(self, scenario: Scenario) -> float | None:
        """Rate of transactions that arrive whether or not earlier ones are done; ``None`` if clients wait.

        As the scenario says, else as recorded, unless the scenario has another number of clients.
        """
        if scenario.rate_per_s or scenario.clients or self.once or not self.observed.arrive:
            return scenario.rate_per_s
        return self.observed.transactions_per_s or None


class ReproducedRun(TolerantModel):
    """The recorded run replayed on its own machine."""

    outcomes: list[SimulationOutcome]
    cpu_scale: float = 1.0
    """Processor time without recording over that in bursts, by the rate between bursts."""
    error: float
    """Rate over that without recording, less 1, with processor time so scaled."""
    latency_error: float | None = None
    """The same of the median latency."""
    p95_error: float | None = None
    p99_error: float | None = None
