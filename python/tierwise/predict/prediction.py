"""Answers: figures with intervals, or a refusal with its reason."""

from __future__ import annotations

from tierwise.model.placement import Role
from tierwise.predict.scenario import Scenario
from tierwise.results.measurements import StrictModel


class Estimate(StrictModel):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends."""
        return self.low, self.high


class Refusal(StrictModel):
    """Why there is no answer, and what would give one."""

    message: str
    fix: str


class Bound(StrictModel):
    """Upper bound of the rate, from the recording alone."""

    rate_per_s: float
    speedup: float
    """Over the recorded rate."""
    because: str
    """The waits assumed gone, or the resource that is full, in words."""


class RoleLoad(StrictModel):
    """Average load of a role on its device."""

    device: str
    """Name of the device's profile, or ``recorded``."""
    size_bytes: int
    """Of its files, as recorded."""
    reads_per_s: float
    writes_per_s: float
    flushes_per_s: float
    read_bytes_per_s: float
    written_bytes_per_s: float
    busy_share: float
    """Share of time in which a request of the role was under way."""

    @property
    def requests_per_s(self) -> float:
        """Reads, writes and flushes."""
        return self.reads_per_s + self.writes_per_s + self.flushes_per_s


class Prediction(StrictModel):
    """The answer to one scenario; without a figure where ``refused``."""

    scenario: Scenario
    refused: Refusal | None = None
    once: bool = False
    """Whether the work was done once and timed, rather than repeated and counted."""
    unit: str = "transactions"
    """What rates count: ``transactions``; ``requests`` or ``slices`` of time where no end of one is shown."""
    from_waits: bool = False
    """Whether it is of the coarse model, from the sampled waits of an observation only."""
    rate_per_s: Estimate | None = None
    seed_rates_per_s: list[float] = []
    """The rate under each seed; the same seeds in every answer from one recording."""
    elapsed_s: Estimate | None = None
    """Time for the work of the recording."""
    speedup: Estimate | None = None
    """Rate over that of the recorded run; above 1 is faster."""
    bound: Bound | None = None
    """No figure is beyond it; ``None`` where the recording shows no processor time."""
    bounds_only: bool = False
    """Whether only the intervals are meaningful: they are too wide for an estimate."""
    saturated: bool = False
    """Whether more transactions arrive than complete, so that their waits keep growing."""
    mean_value_per_s: float | None = None
    """The rate by mean-value analysis, a second opinion."""
    cross_checks: list[str] = []
    """Where that opinion differs, for who doubts the model, as sentences."""
    p50_us: Estimate | None = None
    p95_us: Estimate | None = None
    p99_us: Estimate | None = None
    shares: dict[str, float] = {}
    """Share of the sessions' time by what it goes to; they sum to 1. Of the recorded run, as recorded."""
    gained_computing: float = 0.0
    """Share of the sessions' time on processors beyond that of the recorded run: intervals widen with it."""
    commits_per_flush: float | None = None
    cpu_busy_share: float | None = None
    """Share of the cores' time."""
    io: dict[Role, RoleLoad] = {}
    lost_at_stop: list[Role] = []
    """Roles whose files a restart or a power cut loses, since their device is memory or an instance store."""
    seeds: int = 0
    validated: bool = False
    """Whether the intervals include a calibrated error of the model."""
    notes: list[str] = []
    """The state of caches, checkpoints and devices that the answer holds for, as sentences."""
    warnings: list[str] = []
    """What limits the trust in the answer, that which may make it wrong first, as sentences."""

    @property
    def faster(self) -> bool:
        """Whether the whole interval lies above no change."""
        return self.speedup is not None and self.speedup.low > 1

    @property
    def slower(self) -> bool:
        """Whether the whole interval lies below no change."""
        return self.speedup is not None and self.speedup.high < 1


class RecordedRun(StrictModel):
    """The recorded run, and how well its replay reproduces it."""

    engine: str
    engine_version: str | None
    cores: int
    memory_bytes: int
    clients: int
    duration_s: float
    once: bool
    """Whether the work was done once and timed, in ``duration_s``, rather than repeated and counted."""
    unit: str
    rate_per_s: float
    """As recorded."""
    reproduced_rate_per_s: float
    error: float
    """Reproduced over recorded rate, less 1."""
    latency_error: float | None
    data_directory_bytes: int | None = None
    """Of all files of the database, touched or not; ``None`` where the recording does not know it."""
    devices: dict[Role, str]
    """Role -> profile of the device it lay on, or ``recorded`` for a real one."""
    footprints: dict[Role, int]
    """Bytes of the files of each role."""
    requests_per_transaction: float | None = None
    """Requests of a client for each transaction; ``None`` if no transaction was seen."""
    cpu_us: float | None = None
    """Processor time of a transaction (or request), of client and server with warm caches."""
    commit_delay_us: float | None = None
    """Wait of a flush's leader for more commits, which every device keeps; ``None`` without one."""
    from_waits: bool = False
    """Whether it was observed over SQL rather than recorded."""
    pooler: str | None = None
    """The program between users and sessions, if there is one: ``clients`` are its sessions."""
