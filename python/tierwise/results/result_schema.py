"""The versioned result schema: one run is one record, and reports read nothing else.

Counters are totals over the measured phase unless a name says otherwise. A value that an engine or a device
cannot report is ``None``, never zero.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import AwareDatetime, Field

from tierwise.model.placement import Role
from tierwise.results.conditions import (
    ColdStart,
    DeviceInfo,
    EngineInfo,
    RunConditions,
    StudyHost,
    WorkloadInfo,
)
from tierwise.results.fault_results import DeviceDeaths, PowerCuts
from tierwise.results.measurements import (
    Counters,
    CpuUse,
    FlushCheck,
    Latency,
    NotNegative,
    NotNegativeCount,
    OneLine,
    PatternResult,
    RoleIo,
    RoleProof,
    StrictModel,
    WaitProfile,
)

SCHEMA_VERSION: Final = 3
"""Raised by one whenever a field changes its name, its unit or its meaning."""


class LapResult(StrictModel):
    """One timed lap: a transaction executed a fixed number of times, or a part of the load.

    ``capped``: stopped at the study's cap; ``elapsed_s`` is the time until the stop, not to completion.
    ``wrong``: the checksum is not the expected one.
    """

    name: str
    stream: int = 0
    """Laps of different streams ran side by side."""
    status: Literal["ok", "capped", "failed", "wrong"]
    problem: OneLine | None = None
    timed: bool = True
    """Part of the run's elapsed time."""
    cold: bool = False
    """Server restarted and its files dropped from the page cache before it."""
    cold_start: ColdStart | None = None
    """How, if it is cold."""
    started_s: NotNegative | None = None
    """Since measuring began."""
    elapsed_s: NotNegative
    transactions: NotNegativeCount | None = None
    rows: NotNegativeCount | None = None
    """Returned or affected."""
    checksum: int | None = None
    expected_checksum: int | None = None
    resident_share: NotNegative | None = None
    """Share of the database's bytes in the page cache when it began."""
    latency: Latency | None = None
    counters: Counters | None = None
    io: dict[Role, RoleIo] = {}
    waits: WaitProfile | None = None


class RunResult(StrictModel):
    """One execution of one workload under one placement.

    If a run has several timed laps, ``io``, ``counters``, ``cpu`` and ``waits`` are the sums over these laps,
    without the work between them. ``io`` then has no latencies, because percentiles do not add up, and the
    deadline overrun of a device is that of its worst lap. Laps of concurrent streams have no counters of
    their own; their stage has.
    """

    schema_version: Literal[2, 3] = SCHEMA_VERSION
    study: str
    run_id: str
    placement: str
    setting: dict[str, str] = {}
    repeat: int
    order: int
    study_seed: int
    started_at: AwareDatetime
    status: Literal["ok", "invalid", "failed"]
    problems: list[OneLine] = []

    machine: RunConditions
    engine: EngineInfo
    workload: WorkloadInfo
    devices: list[DeviceInfo]
    role_devices: dict[Role, str]

    elapsed_s: NotNegative | None = None
    """Of the measured phase, or of its timed laps together; absent if one of these was capped."""
    elapsed_at_least_s: NotNegative | None = None
    """Lower bound that replaces ``elapsed_s`` if a timed lap was capped."""
    transactions: NotNegativeCount | None = None
    rate_per_s: NotNegative | None = None
    errors: NotNegativeCount | None = None
    latency: dict[str, Latency] = {}
    """By transaction name, and ``all``."""
    cpu: CpuUse | None = None
    io: dict[Role, RoleIo] = {}
    counters: Counters | None = None
    space: dict[str, int | None] | None = Field(default=None, exclude=True)
    """Of the database, in results of before; nothing reads it."""
    waits: WaitProfile | None = None
    patterns: dict[str, PatternResult] = {}
    """By pattern, of a run that measured a device itself."""
    flush: FlushCheck | None = None
    power_cuts: PowerCuts | None = None
    """Of a study of power cuts; ``elapsed_s`` and ``transactions`` are those under load, of all cuts."""
    device_deaths: DeviceDeaths | None = None
    """Of a study of device deaths, in the same way."""
    elapsed_without_log_wait_s: NotNegative | None = None
    """Morle's projection: no log wait and no shortage of CPU. See ``run_record.projected_time_s``."""
    laps: list[LapResult] = []
    """In the order of their starts; empty for a mix of transactions."""
    scores: dict[str, float] = {}
    """Metrics that the workload defines, such as ``power``, ``throughput`` and ``composite``."""
    residency: dict[Role, NotNegative] = {}
    """Share of each role's bytes that was in the page cache when measuring began."""
    cold_start: ColdStart | None = None
    """How caches were emptied before measuring; null if they were to stay warm."""
    proof: dict[Role, RoleProof] = {}
    host: StudyHost | None = None
    """Of a study on many hosts: where the run's block was."""


class PaperValue(StrictModel):
    """A figure that a paper printed for one placement.

    ``what`` names the measure (``elapsed``, ``log wait share``, ...); reports say which they can compare.
    ``lap`` names its lap, ``setting`` the point of a sweep.
    """

    placement: str
    setting: dict[str, str] = {}
    lap: str | None = None
    what: str
    value: float
    unit: str
    source: str


class StudyInfo(StrictModel):
    """The data of a study that a report needs besides its runs; stored beside them as ``study.json``."""

    schema_version: Literal[2, 3] = SCHEMA_VERSION
    name: str
    question: str
    baseline: str
    """The placement that every other is compared with."""
    placements: list[str] = []
    """In the order that the study declares; reports keep it."""
    sweep: dict[str, list[str]] = {}
    """Settings that are swept, each with its values, least resources first."""
    skipped: dict[str, str] = {}
    """Placements and variants that make no sense on the engine, each with the reason."""
    repeats: int | None = None
    """Planned for each placement, so that a report of an unfinished study can say so."""
    seed: int
    """Decides the order of runs and the workload's parameters."""
    fingerprint: str
    """Changes with anything in the study that affects its runs."""
    recorded: bool = False
    """Whether each run is recorded, which takes time."""
    paper: list[PaperValue] = []
    notes: list[str] = []
    """Where engine, data size and processor differ from the paper's."""


class CheckOutcome(StrictModel):
    """One check and its result."""

    name: str
    """Name of the check: `resolve`, `load`, a transaction or a lap."""
    problem: str | None = None
    """Why it failed; null if it passed."""
    note: str = ""
    """What was done."""


class WorkloadCheck(StrictModel):
    """The check of a workload."""

    file: str
    """The workload's file."""
    summary: str
    """One line about the workload."""
    engine: str
    """Engine that ran it."""
    checks: list[CheckOutcome]
    """The checks, in order; a failed one may end the list."""

    @property
    def failed(self) -> int:
        """Number of failed checks."""
        return sum(tried.problem is not None for tried in self.checks)
