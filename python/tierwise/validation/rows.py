"""The result of one run of a validation: a row, stored as one line of the file that judging reads."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.output_files import append_line
from tierwise.model.roles import Role
from tierwise.results import ColdStart, DeviceInfo, Machine, RoleIo
from tierwise.results.measurements import Record
from tierwise.validation.control import Reading

RUNS_FILE = "runs.jsonl"
REST = "rest"
"""All roles but the log, taken together."""

_FIX = "name the folder of a validation"
_MOST_BYTES = 1 << 28
_FEWEST_FLUSHES = 10
"""Minimum log flushes of a run for a figure of commits per flush."""

Kind = Literal["recorded", "measured"]
Round = Literal["building", "prospective"]


class Io(Record):
    """Requests and bytes of one role, or of several, in the measured time."""

    reads: int = 0
    writes: int = 0
    flushes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    def plus(self, more: RoleIo) -> Io:
        """Sum with the counts of one more role."""
        return Io(
            reads=self.reads + more.reads,
            writes=self.writes + more.writes,
            flushes=self.flushes + (more.flushes or 0),
            read_bytes=self.read_bytes + more.read_bytes,
            written_bytes=self.written_bytes + more.write_bytes,
        )


class Row(Record):
    """One run: of a case, under a placement, recorded or not."""

    case: str
    family: str
    engine: str
    server: str = ""
    """Server with its version."""
    clients: int
    placement: str
    storage: Literal["emulated", "real"]
    kind: Kind
    block: int
    attempt: int = 0
    order: int = 0
    round: Round
    model: str
    """Commit, or version, of tierwise that ran."""
    started_at: datetime
    status: Literal["ok", "spoilt", "failed"] = "ok"
    problems: list[str] = []
    laps: bool = False
    elapsed_s: float | None = None
    transactions: int | None = None
    rate_per_s: float | None = None
    latency_us: dict[str, float] = {}
    cpu_s: float | None = None
    """CPU time of the machine without the servers of emulated disks."""
    log_wait_share: float | None = None
    """Share of the sessions' time, sampled in runs that are not recorded."""
    commits_per_flush: float | None = None
    io: dict[str, Io] = {}
    """I/O of ``log`` and ``rest``; only of emulated disks."""
    late_share: float | None = None
    """The greatest deadline overrun of an emulated disk, as a share of the run."""
    control: list[Reading] = []
    """Readings before and after the run."""
    cold_start: ColdStart | None = None
    """How caches were emptied before the run; null if they were to stay warm."""
    took_s: float = 0.0
    """Wall time, with the run's share of setup and cleanup."""
    machine: Machine | None = None

    @property
    def slot(self) -> tuple[str, str, str, int]:
        """Identity of the run: case, placement, kind, block. A repeated run has the same slot."""
        return self.case, self.placement, self.kind, self.block

    @property
    def run_id(self) -> str:
        """Id of the slot, also the folder of its recording."""
        return "/".join([self.case, self.placement, f"{self.kind}-{self.block}"])

    @property
    def figure(self) -> float | None:
        """Seconds of laps, transactions a second of a mix."""
        return self.elapsed_s if self.laps else self.rate_per_s


def storage_fields(
    io: Mapping[Role, RoleIo], devices: Sequence[DeviceInfo], transactions: int | None, log_syncs: float
) -> dict[str, Any]:
    """Storage counters of a run, as fields of its row.

    Args:
        io: I/O by role; only that of emulated disks is kept.
        devices: devices with their deadline overrun.
        transactions: transactions of the run, if they were counted.
        log_syncs: the engine's count of log flushes, used if no device counts them.
    """
    emulated = {device.name for device in devices if device.profile is not None}
    kept = {role: one for role, one in io.items() if one.device in emulated}
    sums = {name: Io() for name in ("log", REST)} if kept else {}
    for role, one in kept.items():
        name = "log" if role == Role.LOG else REST
        sums[name] = sums[name].plus(one)
    flushes = sums["log"].flushes if kept else log_syncs
    late = [device.deadline_overrun.share for device in devices if device.deadline_overrun is not None]
    return {
        "io": sums,
        "commits_per_flush": transactions / flushes if transactions and flushes >= _FEWEST_FLUSHES else None,
        "late_share": max(late) if late else None,
    }


def read_rows(folder: Path) -> list[Row]:
    """The runs of a validation, oldest first; a truncated last line is left out.

    Raises:
        TierwiseError: naming an invalid line.
    """
    file = folder / RUNS_FILE
    if not os.path.lexists(file):
        return []
    lines = read_text(file, _FIX, most_bytes=_MOST_BYTES, in_folder=True).splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(Row.model_validate_json(line))
        except ValidationError as error:
            if number == len(lines) and not _is_json(line):
                break
            raise TierwiseError(f"{file}, line {number}: {error.errors()[0]['msg']}", "remove it") from error
    return rows


def append_row(folder: Path, row: Row) -> None:
    """Append a run and flush it to the medium before the next begins."""
    append_line(folder / RUNS_FILE, row.model_dump_json(exclude_defaults=True).encode())


def believed(rows: Iterable[Row], case: str, placement: str, kind: Kind) -> list[Row]:
    """Runs of a case that count, one for each block."""
    return [
        row
        for row in rows
        if row.status == "ok" and (row.case, row.placement, row.kind) == (case, placement, kind)
    ]


def finished_slots(rows: Sequence[Row], attempts: int) -> set[tuple[str, str, str, int]]:
    """Slots that need no further run: one run counts, or every attempt was spoilt."""
    done = {row.slot for row in rows if row.status == "ok"}
    tries: dict[tuple[str, str, str, int], int] = {}
    for row in rows:
        tries[row.slot] = tries.get(row.slot, 0) + (row.status == "spoilt")
    return done | {slot for slot, count in tries.items() if count >= attempts}


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
