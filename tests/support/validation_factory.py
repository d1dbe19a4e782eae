"""Slots and pairs of a validation, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tierwise.lab.validation.measured_rates import BlockEstimate
from tierwise.lab.validation.prediction_accuracy import PredictionPair
from tierwise.lab.validation.slot_rows import SlotRow
from tierwise.lab.validation.validation_case import ValidationCase
from tierwise.predict import Estimate

TOML = """
fewest_blocks = 2
most_blocks = 5
slot_s = 5
recorded_s = 12
warm_up_s = 1
quick = ["restore"]
[devices]
own = "own"
disk = "hdd-7k2"
nvme = "ssd-nvme-dc"
[placements]
own = { all = "own" }
all-nvme = { all = "nvme" }
all-7k2 = { all = "disk" }
log-nvme = { log = "nvme", all = "disk" }
[sizes]
log = "1G"
data = "2G"
[[cases]]
name = "accounts"
client = "pgbench"
server = "postgres"
options = { mode = "simple" }
load = "writes"
clients = [1, 4]
recorded = ["all-nvme"]
placements = ["log-nvme", "all-7k2", "own"]
[[cases]]
name = "restore"
client = "postgres-jobs"
server = "postgres"
options = { job = "restore" }
load = "job"
recorded = ["all-7k2"]
placements = ["log-nvme"]
[[cases]]
name = "shell"
client = "sqlite-shell"
load = "writes"
recorded = ["all-7k2"]
placements = ["all-nvme", "log-nvme"]
held_back = true
"""


def row(case: str = "accounts-4", placement: str = "all-nvme", rate: float = 1000.0, **given: Any) -> SlotRow:
    """A slot that counts, of 1,000 transactions a second if nothing else is said."""
    figures: dict[str, Any] = {
        "case": case,
        "family": "pgbench",
        "engine": "postgres",
        "server": "postgres 15.20",
        "clients": 4,
        "placement": placement,
        "storage": "emulated",
        "kind": "slot",
        "block": 0,
        "round": "building",
        "model": "abc",
        "started_at": datetime(2026, 11, 22, tzinfo=UTC),
        "elapsed_s": 1000.0,
        "transactions": round(1000 * rate),
    }
    return SlotRow.model_validate(figures | given)


def measured(value: float, half: float = 0.01) -> BlockEstimate:
    """A figure whose interval reaches ``half`` to both sides."""
    return BlockEstimate(value=value, low=value * (1 - half), high=value * (1 + half), spread=half, blocks=5)


def pair(
    placement: str, predicted: float | None, rate: float, half: float = 0.1, **given: Any
) -> PredictionPair:
    """A prediction whose interval reaches ``half`` to both sides, and a measured rate."""
    estimate = predicted and Estimate(
        value=predicted, low=predicted * (1 - half), high=predicted * (1 + half)
    )
    facts: dict[str, Any] = {
        "case": "c", "family": "pgbench", "load": "writes", "engine": "postgres", "clients": 1,
        "recorded": "r", "path": "emulated→emulated", "block": 0, "round": "building", "model": "abc",
        "laps": False,
        "speedup": 1.0, "ratio": measured(1.0),
    }  # fmt: skip
    facts |= {"placement": placement, "measured": measured(rate), "predicted": estimate or None}
    return PredictionPair.model_validate(facts | given)


class Watcher:
    """Remembers what a round reported."""

    def __init__(self) -> None:
        self.rows: list[SlotRow] = []
        self.skipped: dict[str, str] = {}
        self.cases: list[str] = []
        self.estimated_s = 0.0

    def round_started(self, folder: Path, cases: int, estimated_s: float) -> None:
        self.estimated_s = estimated_s

    def case_started(self, case: ValidationCase) -> None:
        self.cases.append(case.name)

    def phase_started(self, what: str) -> None: ...

    def left_out(self, what: str, reason: str) -> None:
        self.skipped[what] = reason

    def slot_finished(self, row: SlotRow) -> None:
        self.rows.append(row)
