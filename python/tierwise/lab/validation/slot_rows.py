"""The result of one slot of a validation: a row, stored as one line of the file that judging reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from tierwise.results import ColdStart, RunConditions
from tierwise.results.measurements import StrictModel
from tierwise.results.result_files import append_record, read_records

ROWS_FILE = "slots.jsonl"
_FIX = "name the folder of a validation"

Kind = Literal["slot", "recorded", "beside"]
"""``recorded``: the client ran while it was recorded; ``beside``: the slots just before and after that."""
Round = Literal["building", "prospective"]
RecordingKey = tuple[str, str, int, Round]
"""Case, recorded placement, block and round, which tell a recording from all others."""


class SlotRow(StrictModel):
    """One slot: of a case, against one placement, recorded or not."""

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
    bring_up: int = 0
    """Number of times that the case had been brought up before."""
    round: Round
    model: str
    """Commit, or version, of tierwise that ran."""
    started_at: AwareDatetime
    status: Literal["ok", "failed"] = "ok"
    problems: list[str] = []
    laps: bool = False
    elapsed_s: float | None = None
    transactions: int | None = None
    latency_us: dict[str, float] = {}
    idle_cpu_share: float | None = None
    """Share of the machine's processors that was in use just before the slot, while all servers were idle."""
    cold_start: ColdStart | None = None
    """How caches were emptied before the slot; null if they were to stay warm."""
    took_s: float = 0.0
    """Wall time, with the preparation of the slot."""
    machine: RunConditions | None = None

    @property
    def rate_per_s(self) -> float | None:
        """Transactions a second, or jobs a second."""
        if self.status != "ok" or not self.elapsed_s:
            return None
        return (1 if self.laps else self.transactions or 0) / self.elapsed_s or None

    @property
    def key(self) -> RecordingKey:
        """Key of its recording, if it is a recorded slot."""
        return self.case, self.placement, self.block, self.round

    @property
    def run_id(self) -> str:
        """Id of the slot, also the folder of its recording."""
        return "/".join([self.case, self.placement, f"{self.kind}-{self.block}"])


class RecordingVerdict(StrictModel):
    """A recording of a round, and whether it is usable."""

    case: str
    recorded: str
    """The placement."""
    block: int
    round: Round
    rate_per_s: float | None = None
    """Of the client while it was recorded."""
    error: float | None = None
    """Reproduced over recorded rate, less 1."""
    usable: bool = False
    reasons: list[str] = []
    """Why the recording is not usable."""
    problem: str | None = None
    """Why the recording cannot be opened or gives no answer."""

    @property
    def key(self) -> RecordingKey:
        """Key of the recorded slot."""
        return self.case, self.recorded, self.block, self.round


def read_slot_rows(folder: Path) -> list[SlotRow]:
    """The slots of a validation, oldest first; a truncated last line is left out."""
    file = folder / ROWS_FILE
    return read_records(SlotRow, file, _FIX) if os.path.lexists(file) else []


def append_slot_row(folder: Path, row: SlotRow) -> None:
    """Append a slot and flush it to the medium before the next begins."""
    append_record(folder / ROWS_FILE, row, brief=True)


def recording_folder_of(folder: Path, row: SlotRow) -> Path:
    """Folder of the recording of a slot, in that of the validation."""
    return folder / "recordings" / row.run_id


def slots_of_case(rows: Sequence[SlotRow], case: str) -> list[SlotRow]:
    """The slots of a case."""
    return [row for row in rows if row.case == case]
