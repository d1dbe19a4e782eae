"""``tierwise advise``: which recorded files to move first, with gain and cost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import Advice, AdviceOptions, Terms
from tierwise.advise import advise as advised
from tierwise.cli.advise_day import show_day_advice
from tierwise.cli.advise_emit import Emit, check_emit, emit_change
from tierwise.cli.options import (
    Budget,
    Devices,
    Fresh,
    GoalText,
    Grow,
    Growth,
    Have,
    Headroom,
    Instances,
    MayLose,
    Names,
    PricesFile,
    Rebuildable,
    RecordedOn,
    Scheduler,
    TrustScheduler,
    Workers,
    Years,
    progress_console,
)
from tierwise.cli.output import Format, FormatOption, show, write_file
from tierwise.cli.printing import echo
from tierwise.cli.progress import simulations
from tierwise.cluster.simulations import distributed
from tierwise.device_models.prices import YEARS
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.recording import Day
from tierwise.report.document import Block
from tierwise.report.recording.advice import advice_document
from tierwise.report.recording.day import day_advice_section


class By(StrEnum):
    """What is placed."""

    TABLE = "table"


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote, also of a day")],
    *,
    devices: Devices = "",
    have: Have = "",
    budget: Budget = None,
    goal: GoalText = None,
    may_lose: MayLose = None,
    headroom: Headroom = "",
    growth: Growth = "",
    instance: Instances = None,
    grow: Grow = None,
    years: Years = YEARS,
    prices: PricesFile = None,
    recorded_on: RecordedOn = "",
    rebuildable: Rebuildable = False,
    by: Annotated[
        By | None, typer.Option(help="table: which tables and indexes to move to each device")
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(help="space for tables on the device, for example 100G; with --by table")
    ] = None,
    names: Names = None,
    fresh: Fresh = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each answer")] = SEEDS,
    scheduler: Scheduler = None,
    trust_scheduler: TrustScheduler = False,
    workers: Workers = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="write a page, advice.html, with every placement; or the file of --emit"
        ),
    ] = None,
    emit: Annotated[
        Emit | None,
        typer.Option(help="write the recommended placement for another tool; alone to standard output"),
    ] = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Advise which files to move first, the best placement for the money, and how long its devices last."""
    check_emit(emit, recording)
    emitted, output = (output, None) if emit is not None else (None, output)
    if output is not None and output.suffix != ".html":
        raise TierwiseError(f"--output: {str(output)!r} is no page", "name a file that ends in .html")
    if output is not None and instance:
        raise TierwiseError("--instance: the page knows no machines", "leave out --output or --instance")
    if output is not None and Day.is_at(recording):
        require("report", "--output of a day")  # its timeline is drawn
    terms = Terms.parse(
        have=have,
        headroom=headroom,
        growth=growth,
        years=years,
        prices=prices,
        recorded_on=recorded_on,
        rebuildable=rebuildable,
    )
    if by is not None:
        others: dict[str, object] = {
            **{"--budget": budget, "--goal": goal, "--may-lose": may_lose, "--recorded-on": recorded_on},
            **{"--output": output or emitted, "--emit": emit, "--instance": instance, "--grow": grow},
            **{"--scheduler": scheduler, "--workers": workers, "--rebuildable": rebuildable},
        }
        if refused := [name for name, value in others.items() if value]:
            raise TierwiseError(f"{refused[0]}: tables are chosen by size", f"leave out {refused[0]}")
        from tierwise.cli.advise_tables import show_table_advice

        show_table_advice(recording, devices, capacity, names, terms, seeds=seeds, fresh=fresh, format=format)
        return
    if capacity is not None:
        raise TierwiseError("--capacity is of tables", "add --by table")
    options = AdviceOptions.parse(
        devices, budget, goal, terms, fresh=fresh, may_lose=may_lose, instances=instance or [], grow=grow
    )
    with distributed(scheduler, workers, trusted=trust_scheduler) as distribute:
        opened: dict[Path, Predictor] = {}

        def ask(path: Path) -> Advice:
            predictor = Predictor.open(path, seeds=seeds, fresh=fresh, names=names)
            distribute(predictor.replayer, path)
            if output is not None:
                predictor.replayer.remember()  # the page needs the placements that the advice ranks
                opened[path] = predictor
            with simulations(predictor, progress_console(to_stderr=True)):
                return advised(predictor, options, tables=output is not None, named=names is not None)

        day: list[Block] = []
        if Day.is_at(recording):
            of_day = show_day_advice(recording, ask, format)
            if output is None:
                return
            peak = next(answer for answer in of_day.answers if answer.load == "peak")
            day, recording = day_advice_section(of_day), recording / peak.recording
            advice = peak.advice or ask(recording)  # which raises its reason again
        else:
            advice = ask(recording)
            content = {
                "recorded": advice.run.model_dump(mode="json"),
                "advice": advice.model_dump(mode="json"),
            }
            if emit is None or emitted is not None:
                show(advice_document(advice), content, "advice", format)
            if emit is not None:
                emit_change(emit, advice, terms, recording, emitted)
        if output is not None:
            from tierwise.report.advice import advice_page, subject

            predictor = opened[recording]
            with simulations(predictor, progress_console(to_stderr=True)):
                surveyed = subject(predictor, advice, terms, recording, fresh, names)
            page = write_file(output, advice_page(surveyed, day=day).encode())
            echo(f"page: {page}", err=format is not Format.TEXT)
