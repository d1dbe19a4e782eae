"""``tierwise advise``: which of the recorded files to move first, for what gain and what money."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Goal
from tierwise.advise import advise as find_advice
from tierwise.cli.output import print_json, print_parts
from tierwise.errors import TierwiseError
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.report.advice import advice_parts
from tierwise.spelling import names_in

_MONEY = re.compile(r"\$?(\d+(?:\.\d+)?)\$?(?:/(?:month|mo|m))?")


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote")],
    *,
    devices: Annotated[str, typer.Option(metavar="DEVICE,DEVICE", help="what files could be moved to")],
    budget: Annotated[
        str | None, typer.Option(metavar="MONEY/month", help="US dollars for all of them, as 50/month")
    ] = None,
    goal: Annotated[str | None, typer.Option(help="tps=NUMBER, or p50, p95, p99=TIME as p99=5ms")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="new devices as on their first day, not after long use")
    ] = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="runs of the simulator for each")] = SEEDS,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say which files to move first, the best placement for the money, and how long its devices last."""
    budget_usd = _usd(budget) if budget is not None else None
    wanted = Goal.parse(goal) if goal is not None else None
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh)
    advice = find_advice(predictor, names_in(devices), budget_usd, wanted)
    if as_json:
        print_json(predictor.run, advice=advice.model_dump(mode="json"))
    else:
        print_parts(advice_parts(advice))


def _usd(text: str) -> float:
    """US dollars a month.

    Raises:
        TierwiseError: if it is no amount of money.
    """
    match = _MONEY.fullmatch(text.strip())
    if not match:
        raise TierwiseError(f"--budget: {text!r} is no amount of money", "write for example 50/month")
    return float(match[1])
