"""The versioned result schema: one run is one record, and reports read nothing else.

Counters are totals over the measured phase unless a name says otherwise. What an engine or a device
cannot tell is ``None``, never zero.
"""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from tierwise.errors import TierwiseError
from tierwise.measurements import FlushCheck as FlushCheck  # noqa: PLC0414
from tierwise.measurements import FlushTimes as FlushTimes  # noqa: PLC0414
from tierwise.measurements import Latency as Latency  # noqa: PLC0414
from tierwise.measurements import PatternResult as PatternResult  # noqa: PLC0414
from tierwise.measurements import Record as Record  # noqa: PLC0414
from tierwise.roles import Role

SCHEMA_VERSION = 1
"""Raised by one whenever a field changes its name, its unit or its meaning."""

WaitClass = Literal["cpu", "log_sync", "log_lock", "data_read", "data_write", "lock", "client", "other"]
"""Where a session's time goes. ``cpu`` is running or runnable; ``client`` is waiting for the next request."""


_RecordT = TypeVar("_RecordT", bound=Record)


class RoleIo(Record):
    """What one role did to its device during the measured phase."""

    device: str
    reads: int
    writes: int
    flushes: int
    discards: int | None = None
    read_bytes: int
    write_bytes: int
    busy_s: float | None = None
    queue_depth_mean: float | None = None
    read_latency: Latency | None = None
    write_latency: Latency | None = None
    flush_latency: Latency | None = None


class WaitShare(Record):
    """Share of session time in one class, and the half-width of its 95 % interval from sampling."""

    share: float
    sampling_error: float


class WaitProfile(Record):
    """Sampled states of the load's sessions.

    ``shares`` add up to 1. ``samples`` counts sessions seen; ``ticks`` counts the moments of looking.
    """

    ticks: int
    samples: int
    rate_hz: float
    shares: dict[WaitClass, WaitShare]


class CpuUse(Record):
    """CPU seconds during the measured phase. ``other_s`` is whatever none of the others used."""

    engine_s: float
    clients_s: float
    disks_s: float | None = None
    other_s: float | None = None


class Lateness(Record):
    """How late an emulated device completed requests; a run above ``bound_share`` is invalid."""

    p50_us: float
    p99_us: float
    max_us: float
    share: float
    """Sum of all lateness over the elapsed time: how much longer it can have made the run."""
    bound_share: float


class DeviceInfo(Record):
    """A device as the run had it. ``kind`` is that of its profile, or ``real``."""

    name: str
    kind: str
    profile: str | None = None
    path: str | None = None
    roles: list[Role]
    lateness: Lateness | None = None
    io: RoleIo | None = None
    """Totals of the whole device; on a real device, which roles share, the only counters there are."""


class EngineInfo(Record):
    """The database server and every setting it ran with."""

    name: str
    version: str
    settings: dict[str, str]


class WorkloadInfo(Record):
    """What the clients did."""

    name: str
    scale: float
    clients: int
    seed: int
    warmup_transactions: int
    caches: Literal["cold", "warm"] = "cold"
    """Before the warm-up: a restarted server and an empty page cache, or both as loading left them."""


class Machine(Record):
    """Conditions of the run."""

    host: str
    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    operating_system: str
    tierwise_version: str


class RunResult(Record):
    """One execution of one workload under one placement."""

    schema_version: Literal[1] = 1
    study: str
    run_id: str
    placement: str
    setting: dict[str, str] = {}
    repeat: int
    order: int
    study_seed: int
    started_at: datetime
    status: Literal["ok", "invalid", "failed"]
    problems: list[str] = []

    machine: Machine
    engine: EngineInfo
    workload: WorkloadInfo
    devices: list[DeviceInfo]
    role_devices: dict[Role, str]

    elapsed_s: float | None = None
    transactions: int | None = None
    rate_per_s: float | None = None
    errors: int | None = None
    latency: dict[str, Latency] = {}
    """By transaction name, and ``all``."""
    cpu: CpuUse | None = None
    io: dict[Role, RoleIo] = {}
    log_bytes: int | None = None
    buffer_hits: int | None = None
    buffer_misses: int | None = None
    waits: WaitProfile | None = None
    patterns: dict[str, PatternResult] = {}
    """By pattern, of a run that measured a device itself."""
    flush: FlushCheck | None = None
    elapsed_without_log_wait_s: float | None = None
    """Morle's projection: the log wait gone and CPU not short. See ``lab.projection``."""


class PaperValue(Record):
    """A figure that a paper printed for one placement.

    ``what`` is a measure by name (``elapsed``, ``log wait share``, ...); reports say which they can compare.
    """

    placement: str
    what: str
    value: float
    unit: str
    source: str


class StudyInfo(Record):
    """What a report must know of the study besides its runs; stored beside them as ``study.json``."""

    schema_version: Literal[1] = 1
    name: str
    question: str
    baseline: str
    """The placement that every other is compared with."""
    placements: list[str] = []
    """In the order that the study declares; reports keep it."""
    repeats: int | None = None
    """Planned for each placement, so that a report of an unfinished study can say so."""
    seed: int
    """Decides the order of runs and the workload's parameters."""
    fingerprint: str
    """Changes with anything in the study that affects its runs."""
    paper: list[PaperValue] = []
    notes: list[str] = []
    """Where engine, data size and processor differ from the paper's."""


def write_study_info(path: Path, info: StudyInfo) -> None:
    """Write ``study.json``, replacing what was there."""
    path.write_text(info.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_study_info(path: Path) -> StudyInfo:
    """Read ``study.json``.

    Raises:
        TierwiseError: if the file is missing, or is not a study of this schema version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TierwiseError(
            f"{path}: {error.strerror}", "name a directory that a study has written"
        ) from error
    return _validated(StudyInfo, text, str(path))


def append_result(path: Path, result: RunResult) -> None:
    """Add one record to a JSON Lines file and force it to disk, so that a kill loses no finished run.

    What a crash or a full disk left of a last line is cut off first.

    Raises:
        TierwiseError: if the file cannot be written; records before this one stay.
    """
    line = result.model_dump_json().encode() + b"\n"
    try:
        whole_bytes = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
        with path.open("ab") as file:
            file.truncate(whole_bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "make room, then run the study again") from error


def read_results(path: Path) -> list[RunResult]:
    """Read a JSON Lines file of results; a last line cut short by a crash is left out.

    Raises:
        TierwiseError: if the file is missing, or a line is not a result of this schema version.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise TierwiseError(
            f"{path}: {error.strerror}", "name the results.jsonl of a study that has run"
        ) from error
    complete = lines[:-1]
    return [_validated(RunResult, line, f"{path}:{n}") for n, line in enumerate(complete, start=1) if line]


def _validated(model: type[_RecordT], text: str, where: str) -> _RecordT:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "record"
        raise TierwiseError(
            f"{where}: {field}: {first['msg']}",
            f"read it with the tierwise that wrote it, or run the study again (schema {SCHEMA_VERSION})",
        ) from error


def write_parquet(path: Path, results: Iterable[RunResult]) -> None:
    """Write the records as one Parquet table, nested parts as structs."""
    import tempfile

    import duckdb

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as lines:
        lines.writelines(result.model_dump_json() + "\n" for result in results)
        lines.flush()
        duckdb.read_json(lines.name, format="newline_delimited").write_parquet(str(path))
