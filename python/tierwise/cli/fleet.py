"""``tierwise fleet``: many recordings under one budget."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tierwise.advise import AdviceOptions, PaymentTerms
from tierwise.advise.costs import HEADROOM
from tierwise.cli import options as opt
from tierwise.cli.output import (
    FormatOption,
    OutputFormat,
    output_file_option,
    print_result,
    progress_counter,
    require_suffix,
    write_page,
)
from tierwise.cluster.dask_executor import open_executor
from tierwise.device_models.prices import YEARS
from tierwise.fleet.fleet_advice import advise_fleet
from tierwise.fleet.fleet_databases import FleetWeights, find_recordings
from tierwise.fleet.option_row_store import OptionRowStore
from tierwise.fleet.packing import SharingLimits
from tierwise.model.errors import TierwiseError
from tierwise.predict.predictor import SEEDS
from tierwise.report.fleet_report import fleet_document, fleet_page

app = typer.Typer(no_args_is_help=True, help="Advise on many databases under one budget.")


@app.callback()
def _fleet() -> None:
    """Advise on many databases under one budget."""


@app.command("advise")
def print_fleet_advice(
    recordings: Annotated[
        list[str],
        typer.Argument(help="folders that tierwise record wrote, globs such as 'recordings/*', or URIs"),
    ],
    *,
    devices: opt.Devices = "",
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="MONEY/month", help="most that all moves together may cost"),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", help="TOML file: importance, p99 and frozen of each database")
    ] = None,
    headroom: opt.Headroom = HEADROOM,
    growth: opt.Growth = "",
    years: opt.Years = YEARS,
    prices: opt.PricesFile = None,
    recorded_on: opt.RecordedOn = "",
    fresh: opt.Fresh = False,
    seeds: opt.Seeds = SEEDS,
    seed: opt.FixedSeed = 0,
    scheduler: opt.Scheduler = None,
    trust_scheduler: opt.TrustScheduler = False,
    workers: opt.Workers = None,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="keep finished databases here, and resume")
    ] = None,
    share: Annotated[
        bool, typer.Option("--share", help="pack logs on shared devices, tried by joint replays")
    ] = False,
    share_loss: Annotated[
        str,
        typer.Option("--share-loss", metavar="PERCENT", help="rate that a database may lose by sharing; 10%"),
    ] = "",
    share_most: Annotated[
        int | None, typer.Option("--share-most", min=2, max=64, help="most databases on one shared device; 4")
    ] = None,
    output: Annotated[
        Path | None, output_file_option("-o", "--output", help="write a page, fleet.html")
    ] = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Advise which files of which databases to move, for one budget of all of them."""
    require_suffix(output, ".html", "page")
    terms = PaymentTerms.parse(
        headroom=headroom, growth=growth, years=years, prices=prices, recorded_on=recorded_on
    )
    options = AdviceOptions.parse(devices, budget, None, terms, fresh=fresh)
    if not share and (share_loss or share_most):
        raise TierwiseError("--share-loss and --share-most limit what --share does", "add --share")
    limits = SharingLimits.parse(share_loss, share_most) if share else None
    weighed = FleetWeights.read(weights) if weights else FleetWeights()
    tasks, left_out = find_recordings(recordings)
    with ExitStack() as stack:
        kept = stack.enter_context(OptionRowStore.opened(results)) if results else None
        engine = stack.enter_context(open_executor(scheduler, workers, trusted=trust_scheduler))
        progress = stack.enter_context(progress_counter("recordings", opt.progress_console(to_stderr=True)))
        advice = advise_fleet(
            tasks,
            options,
            engine,
            weighed,
            left_out=left_out,
            seeds=seeds,
            seed=seed,
            share=limits,
            results=kept,
            progress=progress,
        )
    print_result(fleet_document(advice), {"fleet": advice}, "fleet-advice", format)
    if output is not None:
        write_page(output, fleet_page(advice), err=format is not OutputFormat.TEXT)
