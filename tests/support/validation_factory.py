"""Rows and pairs of a validation, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tierwise.predict import Estimate
from tierwise.validation import Pair, Row
from tierwise.validation.control import Reading
from tierwise.validation.order import Session

TOML = """
repeats = 2
seconds = 30
warm_up_s = 1
[control]
cpu_s = 0.01
sync_s = 0.01
cpu_slower = 0.05
[devices]
own = "own"
disk = "hdd-7k2"
nvme = "ssd-nvme-dc"
[placements]
own = { all = "own" }
all-nvme = { all = "nvme" }
all-7k2 = { all = "disk" }
log-nvme = { log = "nvme", all = "disk" }
[[cases]]
name = "accounts"
client = "pgbench"
server = "postgres"
options = { mode = "simple" }
clients = [1, 4]
recorded = ["all-nvme"]
placements = ["log-nvme", "all-7k2", "own"]
each_round = 2
[[cases]]
name = "restore"
client = "postgres-jobs"
server = "postgres"
options = { job = "restore" }
recorded = ["all-7k2"]
placements = ["log-nvme"]
[quick]
cases = ["restore"]
seconds = 5
"""


def row(case: str = "accounts-4", placement: str = "all-nvme", **given: Any) -> Row:
    """A run that counts, of 1,000 transactions a second."""
    figures: dict[str, Any] = {
        "case": case,
        "family": "pgbench",
        "engine": "postgres",
        "server": "postgres 15.20",
        "clients": 4,
        "placement": placement,
        "storage": "emulated",
        "kind": "measured",
        "block": 0,
        "round": "building",
        "model": "abc",
        "started_at": datetime(2026, 11, 22, tzinfo=UTC),
        "elapsed_s": 30.0,
        "transactions": 30_000,
        "rate_per_s": 1000.0,
        "control": [Reading(cpu_per_s=600, sync_per_s=2000)] * 2,
    }
    return Row.model_validate(figures | given)


def pair(
    placement: str, predicted: float | None, measured: list[float], half: float = 0.1, **given: Any
) -> Pair:
    """A prediction whose interval reaches ``half`` to both sides."""
    estimate = predicted and Estimate(
        value=predicted, low=predicted * (1 - half), high=predicted * (1 + half)
    )
    facts: dict[str, Any] = {
        "case": "c", "family": "pgbench", "engine": "postgres", "clients": 1, "recorded": "r",
        "path": "emulated→emulated", "block": 0, "round": "building", "model": "abc", "unit": "s",
        "speedup": 1.0,
    }  # fmt: skip
    facts |= {"placement": placement, "measured": measured, "predicted": estimate or None}
    return Pair.model_validate(facts | given)


class Watcher:
    """Remembers what a round said."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.skipped: dict[str, str] = {}
        self.estimated_s = 0.0

    def round_started(self, folder: Path, sessions: int, estimated_s: float) -> None:
        self.estimated_s = estimated_s

    def session_started(self, session: Session) -> None: ...

    def phase_started(self, what: str) -> None: ...

    def left_out(self, what: str, reason: str) -> None:
        self.skipped[what] = reason

    def run_finished(self, row: Row) -> None:
        self.rows.append(row)
