"""Databases of a fleet with options whose best set can be worked out by hand."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from support.paths import RECORDINGS
from tierwise.advise import AdviceOptions, PaymentTerms
from tierwise.advise.priced_placement import GoalVerdict
from tierwise.fleet.database_options import DatabaseOptions, FleetOption
from tierwise.fleet.fleet_advice import fleet_advice_from_options
from tierwise.fleet.fleet_databases import FleetWeights, SkippedRecording
from tierwise.fleet.records import FleetAdvice
from tierwise.model.placement import Role
from tierwise.model.units import parse_monthly_amount
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
    verdict: GoalVerdict | None = None,
    told: bool = True,
) -> FleetOption:
    """A placement of some roles; ``spread`` is the high end of its interval over its value."""
    return FleetOption(
        placement=dict.fromkeys(roles, device),
        cost_per_month=cost,
        speedup=Estimate(value=speedup, low=speedup / spread, high=speedup * spread),
        told=told,
        seed_half_width=seed_half_width,
        p99_us=Estimate(value=9000 / speedup, low=8000 / speedup, high=12_000 / speedup),
        verdict=verdict,
    )


def recorded(verdict: GoalVerdict | None = None) -> FleetOption:
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
    *outcomes: DatabaseOptions | SkippedRecording,
    budget: str | None = None,
    weights: FleetWeights | None = None,
    frozen: Sequence[str] = (),
    draws: int = 10,
) -> FleetAdvice:
    """The advice for some databases, from few draws."""
    limit = None if budget is None else parse_monthly_amount(budget, "--budget", "USD")
    options = AdviceOptions(["nvme-dc", "gp3"], limit, terms=PaymentTerms())
    return fleet_advice_from_options(outcomes, options, weights or FleetWeights(), frozen=frozen, draws=draws)


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
