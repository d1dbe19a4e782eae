"""``tierwise validate``: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from tierwise import validate
from tierwise.cli.output import warn, wide_console, write_file
from tierwise.cli.validate_progress import RoundProgress
from tierwise.errors import TierwiseError
from tierwise.host import clean
from tierwise.predict import ModelError
from tierwise.predict.model_error import FILE as MODEL_ERROR
from tierwise.report.accuracy import COLUMNS, accuracy_page, summary_rows
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.charts.accuracy import accuracy_chart
from tierwise.units import parse_size_bytes

RESULTS = Path("results/validate")
ACCURACY_FILE = "accuracy.json"
PAGE_FILE = "accuracy.md"
CHART_FILE = "accuracy.svg"
_BARS_NOT_KEPT = 1
_TABLE_COLUMNS = 150

CaseNames = Annotated[list[str] | None, typer.Option("--case", help="run this one, or those that begin so")]
RoundName = Literal["building", "prospective"]


def run(
    file: Annotated[
        Path | None, typer.Argument(help="cases; those that ship with tierwise if not given")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="few cases, short runs, each once")] = False,
    case: CaseNames = None,
    round: Annotated[
        RoundName, typer.Option("--round", help="prospective: the model is frozen at this commit")
    ] = "building",
    rotation: Annotated[
        int, typer.Option(min=0, help="number of the round: which placements each case takes")
    ] = 0,
    repeats: Annotated[int | None, typer.Option(min=1, help="blocks, in place of the cases' own")] = None,
    out: Annotated[Path, typer.Option(help="folder for rows and recordings")] = RESULTS,
    seed: Annotated[int | None, typer.Option(help="order of runs; random when not given")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="throw away what is there")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="print how long it will take")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="run nothing; judge what is there")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="folder for accuracy.md and its chart")] = None,
    publish: Annotated[Path | None, typer.Option(help="copy the rows to this folder, without paths")] = None,
    recordings: Annotated[
        str | None, typer.Option(help="publish the smallest recordings, too, redacted: as many as fit in 20M")
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="let predictions know the errors that were found while building")
    ] = False,
) -> None:
    """Measure how far predictions are from the truth: record, predict, measure, compare.

    One that was stopped goes on where it was. Exit status 1 if a bar is not kept.
    """
    console = Console()
    if not judge_only:
        spec = _spec(file, quick, repeats)
        cases, left_out = validate.cases_of(spec, quick, case or [], rotation)
        for what, why in left_out.items():
            console.print(f"left out: {what}: {why}", highlight=False, soft_wrap=True, markup=False)
        if estimate:
            seconds = validate.estimate_s(
                validate.plan(cases, spec.repeats, 0), spec, validate.read_rows(out)
            )
            console.print(f"{len(cases)} cases: about {seconds / 60:.0f} min", highlight=False)
            return
        begun: dict[str, Any] = {"round": round, "rotation": rotation, "seed": seed, "fresh": fresh}
        _run(console, spec, cases, out, left_out=left_out, **begun)
    rounds = validate.rounds_in(out)
    with console.status("predicting") as status:
        accuracy, learnt = validate.judge(rounds, status.update)
    _print(accuracy)
    _write(page or out, out, accuracy, [row for one in rounds for row in one.rows])
    kept_bytes = parse_size_bytes(recordings, "--recordings") if recordings else 0
    for folder in validate.publish(rounds, publish, kept_bytes) if publish else []:
        typer.echo(f"published: {folder}")
    if learn:
        _learn(learnt)
    if not validate.summary(accuracy.predictions, accuracy.controls).passed:
        raise typer.Exit(_BARS_NOT_KEPT)


def _spec(file: Path | None, quick: bool, repeats: int | None) -> validate.ValidationSpec:
    spec = validate.load(file)
    spec = spec.selected() if quick else spec
    return spec.model_copy(update={"repeats": repeats}) if repeats else spec


def _run(
    console: Console, spec: validate.ValidationSpec, cases: Sequence[validate.Case], out: Path, **begun: Any
) -> None:
    for line in clean.clean_before(warn):
        typer.echo(f"cleaned up: {line}")
    with RoundProgress(console) as progress:
        validate.run(spec, cases, out.absolute(), progress, **begun)


def _print(accuracy: validate.Accuracy) -> None:
    console = wide_console(_TABLE_COLUMNS)
    for name in dict.fromkeys(pair.round for pair in accuracy.pairs):
        table = Table(*COLUMNS, box=None, title=f"{name} round", title_justify="left")
        for row in summary_rows(accuracy, name):
            table.add_row(*row)
        console.print(table)


def _write(directory: Path, out: Path, accuracy: validate.Accuracy, rows: Sequence[validate.Row]) -> None:
    answered = [pair for pair in accuracy.predictions if pair.predicted is not None]
    write_file(out / ACCURACY_FILE, accuracy.model_dump_json(indent=1).encode())
    text = accuracy_page(accuracy, rows, CHART_FILE if answered else None)
    page = write_file(directory / PAGE_FILE, text.encode())
    if answered:
        drawing = to_svg(accuracy_chart(answered, WIDE), "accuracy", "Predicted against measured")
        write_file(directory / CHART_FILE, drawing.encode())
    typer.echo(f"written: {page}")


def _learn(learnt: ModelError) -> None:
    if not learnt.errors:
        raise TierwiseError("--learn: nothing was compared while building", "run a building round first")
    MODEL_ERROR.write_text(validate.to_toml(learnt), "utf-8")
    typer.echo(f"learnt: {MODEL_ERROR}")
