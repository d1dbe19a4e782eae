"""``tierwise advise``: which recorded files to move first, with gain and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Advice, Goal, Terms
from tierwise.advise import advise as find_advice
from tierwise.cli.advise_day import show_day_advice
from tierwise.cli.options import (
    Budget,
    Devices,
    Fresh,
    GoalText,
    Growth,
    Have,
    Headroom,
    PricesFile,
    RecordedOn,
    Years,
)
from tierwise.cli.output import Format, FormatOption, show, write_file
from tierwise.cli.progress import simulations
from tierwise.cli.settings import progress_console
from tierwise.device_models.billing import YEARS
from tierwise.model.errors import TierwiseError
from tierwise.model.money import parse_monthly
from tierwise.model.suggestions import names_in
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.recording import Day
from tierwise.report.advice import advice_page, subject
from tierwise.report.document import Block
from tierwise.report.recording.advice import advice_document
from tierwise.report.recording.day_advice import day_advice_section


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote, also of a day")],
    *,
    devices: Devices = "",
    have: Have = "",
    budget: Budget = None,
    goal: GoalText = None,
    headroom: Headroom = "",
    growth: Growth = "",
    years: Years = YEARS,
    prices: PricesFile = None,
    recorded_on: RecordedOn = "",
    fresh: Fresh = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each answer")] = SEEDS,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write a page, advice.html, with every placement")
    ] = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Advise which files to move first, the best placement for the money, and how long its devices last."""
    if output is not None and output.suffix != ".html":
        raise TierwiseError(f"--output: {str(output)!r} is no page", "name a file that ends in .html")
    terms = Terms.parse(
        have=have, headroom=headroom, growth=growth, years=years, prices=prices, recorded_on=recorded_on
    )
    most = parse_monthly(budget, "--budget", terms.prices.currency) if budget is not None else None
    wanted = Goal.parse(goal) if goal is not None else None
    names = names_in(devices)

    def ask(predictor: Predictor) -> Advice:
        with simulations(predictor, progress_console(to_stderr=True)):
            return find_advice(predictor, names, most, wanted, terms)

    def opened(path: Path) -> Predictor:
        return Predictor.open(path, seeds=seeds, fresh=fresh)

    day: list[Block] = []
    shown = Day.is_at(recording)
    if shown:
        of_day = show_day_advice(recording, lambda path: ask(opened(path)), format)
        if output is None:
            return
        day, recording = day_advice_section(of_day), recording / of_day.day.chosen["peak"]
    predictor = opened(recording)
    if output is not None:
        predictor.replayer.remember()  # the page needs the placements that the advice ranks
    advice = ask(predictor)
    if not shown:
        found = {"recorded": predictor.run.model_dump(mode="json"), "advice": advice.model_dump(mode="json")}
        show(advice_document(advice), found, "advice", format)
    if output is not None:
        with simulations(predictor, progress_console(to_stderr=True)):
            found_subject = subject(predictor, advice, terms, recording, fresh)
        page = write_file(output, advice_page(found_subject, day=day).encode())
        typer.echo(f"page: {page}", err=format is not Format.TEXT)
