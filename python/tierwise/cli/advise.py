"""``tierwise advise``: which recorded files to move first, with gain and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Goal, parse_budget_usd
from tierwise.advise import advise as find_advice
from tierwise.cli.output import Format, FormatOption, show
from tierwise.cli.progress import simulations
from tierwise.cli.settings import progress_console
from tierwise.model.suggestions import names_in
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.report.recording.advice import advice_document


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote")],
    *,
    devices: Annotated[str, typer.Option(metavar="DEVICE,DEVICE", help="candidate devices")],
    budget: Annotated[
        str | None, typer.Option(metavar="MONEY/month", help="limit in US dollars, for example 50/month")
    ] = None,
    goal: Annotated[str | None, typer.Option(help="target: tps=NUMBER, or a latency such as p99=5ms")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="devices in factory state; by default they are worn in")
    ] = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each answer")] = SEEDS,
    format: FormatOption = Format.TEXT,
) -> None:
    """Advise which files to move first, the best placement for the money, and how long its devices last."""
    budget_usd = parse_budget_usd(budget) if budget is not None else None
    wanted = Goal.parse(goal) if goal is not None else None
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh)
    with simulations(predictor, progress_console(to_stderr=True)):
        advice = find_advice(predictor, names_in(devices), budget_usd, wanted)
    found = {"recorded": predictor.run.model_dump(mode="json"), "advice": advice.model_dump(mode="json")}
    show(advice_document(advice), found, "advice", format)
