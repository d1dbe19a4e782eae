"""Databases of a fleet with options whose best set can be worked out by hand."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from support.paths import RECORDINGS
from tierwise.advise import AdviceOptions, Terms
from tierwise.advise.option import Verdict
from tierwise.fleet.advice import best_moves
from tierwise.fleet.catalogue import LeftOutRecording, Weights
from tierwise.fleet.options import DatabaseOptions, FleetOption
from tierwise.fleet.records import FleetAdvice
from tierwise.model.placement import Role
from tierwise.model.units import parse_monthly
from tierwise.predict import Estimate

EXAMPLES = RECORDINGS
NVME, GP3 = "ssd-nvme-dc", "volume-aws-gp3"
ONE = Estimate(value=1, low=1, high=1)


def option(
    cost: float,
    speedup: float,
    roles: Sequence[Role] = (Role.LOG,),
    *,
    device: str = NVME,
    spread: float = 1.0,
    seed_half_width: float = 0.0,
    verdict: Verdict | None = None,
) -> FleetOption:
    """A placement of some roles; ``spread`` is the high end of its interval over its value."""
    return FleetOption(
        placement=dict.fromkeys(roles, device),
        cost_per_month=cost,
        speedup=Estimate(value=speedup, low=speedup / spread, high=speedup * spread),
        seed_half_width=seed_half_width,
        p99_us=Estimate(value=9000 / speedup, low=8000 / speedup, high=12_000 / speedup),
        verdict=verdict,
    )


def recorded(verdict: Verdict | None = None) -> FleetOption:
    return FleetOption(placement={}, cost_per_month=0, speedup=ONE, verdict=verdict)


def database(name: str, *options: FleetOption, warnings: Sequence[str] = ()) -> DatabaseOptions:
    """A database with its recorded placement and some others."""
    first = [] if any(not option.placement for option in options) else [recorded()]
    return DatabaseOptions(
        name=name,
        uri=f"recordings/{name}",
        engine="postgres",
        engine_version="18.1",
        unit="transactions",
        options=[*first, *options],
        warnings=list(warnings),
    )


def advised(
    *outcomes: DatabaseOptions | LeftOutRecording,
    budget: str | None = None,
    weights: Weights | None = None,
    frozen: Sequence[str] = (),
    draws: int = 10,
) -> FleetAdvice:
    """The advice for some databases, from few draws."""
    limit = None if budget is None else parse_monthly(budget, "--budget", "USD")
    options = AdviceOptions(["nvme-dc", "gp3"], limit, terms=Terms())
    return best_moves(outcomes, options, weights or Weights(), frozen=frozen, draws=draws)


def chosen(advice: FleetAdvice) -> dict[str, list[str]]:
    """Database -> the roles that its option moves, of those that move any."""
    return {
        database.name: list(database.option.placement)
        for database in advice.databases
        if database.option.placement
    }


def write_recordings(folder: Path) -> Path:
    """Two shipped recordings, a damaged one, a folder that is none, and a file."""
    for name in ("keyed-update", "order-entry"):
        shutil.copytree(EXAMPLES / name, folder / name)
    shutil.copytree(EXAMPLES / "order-entry", folder / "torn")
    (folder / "torn" / "blocks.parquet").write_bytes(b"PAR1")
    (folder / "photos").mkdir()
    (folder / "README.md").write_text("not a recording")
    return folder
