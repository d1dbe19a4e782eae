"""``tierwise advise``: which recorded files to move first, with gain and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Advice, Goal, Terms
from tierwise.advise import advise as find_advice
from tierwise.cli.advise_day import show_day_advice
from tierwise.cli.output import Format, FormatOption, show
from tierwise.cli.progress import simulations
from tierwise.cli.settings import progress_console
from tierwise.device_models.billing import YEARS
from tierwise.model.money import parse_monthly
from tierwise.model.suggestions import names_in
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.recording import Day
from tierwise.report.recording.advice import advice_document


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote, also of a day")],
    *,
    devices: Annotated[str, typer.Option(metavar="DEVICE,DEVICE", help="candidate devices")] = "",
    have: Annotated[
        str, typer.Option(metavar="DEVICE,DEVICE", help="devices that are owned already and cost nothing")
    ] = "",
    budget: Annotated[
        str | None,
        typer.Option(metavar="MONEY/month", help="most that a placement may cost, for example 50/month"),
    ] = None,
    goal: Annotated[str | None, typer.Option(help="target: tps=NUMBER, or a latency such as p99=5ms")] = None,
    headroom: Annotated[
        str, typer.Option(metavar="PERCENT", help="free space on each new device, for example 30%")
    ] = "",
    growth: Annotated[
        str,
        typer.Option(
            metavar="PERCENT", help="growth of the files that new devices have to hold, for example 50%"
        ),
    ] = "",
    years: Annotated[float, typer.Option(help="service life of a purchased device")] = YEARS,
    prices: Annotated[
        Path | None, typer.Option(help="TOML file of prices, which replace those that ship")
    ] = None,
    recorded_on: Annotated[
        str,
        typer.Option(
            metavar="DEVICE", help="what the recorded device is, for example gp3 or log=io2,all=gp3"
        ),
    ] = "",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="devices in factory state; by default they are worn in")
    ] = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each answer")] = SEEDS,
    format: FormatOption = Format.TEXT,
) -> None:
    """Advise which files to move first, the best placement for the money, and how long its devices last."""
    terms = Terms.parse(
        have=have, headroom=headroom, growth=growth, years=years, prices=prices, recorded_on=recorded_on
    )
    most = parse_monthly(budget, "--budget", terms.prices.currency) if budget is not None else None
    wanted = Goal.parse(goal) if goal is not None else None

    def ask(path: Path) -> Advice:
        predictor = Predictor.open(path, seeds=seeds, fresh=fresh)
        with simulations(predictor, progress_console(to_stderr=True)):
            return find_advice(predictor, names_in(devices), most, wanted, terms)

    if Day.is_at(recording):
        show_day_advice(recording, ask, format)
        return
    advice = ask(recording)
    found = {"recorded": advice.run.model_dump(mode="json"), "advice": advice.model_dump(mode="json")}
    show(advice_document(advice), found, "advice", format)
