"""``tierwise validate``: predictions beside measurements on live disks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise import lab, validate
from tierwise.cli.output import write_file
from tierwise.cli.progress import LabProgress
from tierwise.errors import TierwiseError
from tierwise.host import clean
from tierwise.predict import ModelError
from tierwise.predict.model_error import FILE as MODEL_ERROR
from tierwise.report.accuracy import COLUMNS, accuracy_page, summary_rows
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.charts.accuracy import accuracy_chart
from tierwise.results import RunResult

RESULTS = Path("results/validate")
ACCURACY_FILE = "accuracy.json"
PAGE_FILE = "accuracy.md"
CHART_FILE = "accuracy.svg"
_BARS_NOT_KEPT = 1

CaseNames = Annotated[list[str] | None, typer.Option("--case", help="run this one, or those that begin so")]


def run(
    file: Annotated[
        Path | None, typer.Argument(help="cases; those that ship with tierwise if not given")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="few cases and placements, each run once")] = False,
    case: CaseNames = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="in place of the cases' own number")] = None,
    out: Annotated[Path, typer.Option(help="directory for results and recordings")] = RESULTS,
    seed: Annotated[int | None, typer.Option(help="order of runs; random when not given")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="throw away what is there")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="run nothing; judge what is there")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="directory for accuracy.md and its chart")] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="let predictions know the errors that were found")
    ] = False,
) -> None:
    """Measure how far predictions are from the truth: record, predict, run on live disks, compare.

    One that was stopped goes on where it was. Exit status 1 if a bar is not kept.
    """
    console = Console()
    spec = validate.load(file)
    cases, left_out = validate.cases_of(spec, quick, case or [], repeats)
    if not judge_only:
        for line in clean.clean():
            typer.echo(f"cleaned up: {line}")
        with LabProgress(console) as progress:
            validate.run(spec, cases, out, progress, seed=seed, fresh=fresh)
    results = lab.results_in(out)
    runs = validate.Runs(spec, cases, out, results)
    with console.status("predicting") as status:
        accuracy, learnt = validate.judge(runs, left_out, status.update)
    _print(console, accuracy)
    _write(page or out, out, accuracy, results)
    if learn:
        _learn(learnt)
    if not validate.summary(accuracy.pairs).passed:
        raise typer.Exit(_BARS_NOT_KEPT)


def _print(console: Console, accuracy: validate.Accuracy) -> None:
    table = Table(*COLUMNS, box=None)
    for row in summary_rows(accuracy):
        table.add_row(*row)
    console.print(table)


def _write(directory: Path, out: Path, accuracy: validate.Accuracy, results: list[RunResult]) -> None:
    answered = [pair for pair in accuracy.pairs if pair.predicted is not None]
    write_file(out / ACCURACY_FILE, accuracy.model_dump_json(indent=1).encode())
    text = accuracy_page(accuracy, results, CHART_FILE if answered else None)
    page = write_file(directory / PAGE_FILE, text.encode())
    if answered:
        drawing = to_svg(accuracy_chart(answered, WIDE), "accuracy", "Predicted against measured")
        write_file(directory / CHART_FILE, drawing.encode())
    typer.echo(f"written: {page}")


def _learn(learnt: ModelError) -> None:
    if not learnt.errors:
        raise TierwiseError("--learn: nothing was compared", "run the cases first")
    MODEL_ERROR.write_text(validate.to_toml(learnt), "utf-8")
    typer.echo(f"learnt: {MODEL_ERROR}")
