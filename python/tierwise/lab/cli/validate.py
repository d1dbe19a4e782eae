"""``tierwise validate``: compares predictions with measurements, and shows its progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tierwise.cli import printing
from tierwise.cli.options import DropCaches, Scheduler, Seed, TrustScheduler, Workers, progress_console
from tierwise.cli.output import Format, FormatOption, show, warn
from tierwise.cluster.dask_executor import LOCAL, check
from tierwise.cluster.simulations import distributed
from tierwise.host import clean
from tierwise.lab.cli.progress import ConsoleProgress
from tierwise.lab.report.accuracy import COLUMNS, accuracy_chart, accuracy_page, summary_rows
from tierwise.lab.validation import judging, runner
from tierwise.lab.validation.accuracy import Accuracy
from tierwise.lab.validation.calibration import to_toml
from tierwise.lab.validation.case import Case, cases_of
from tierwise.lab.validation.rows import Round, Row, read_rows
from tierwise.lab.validation.spec import SHIPPED, ValidationSpec, load
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require
from tierwise.model.units import parse_duration_s, parse_size_bytes, significant
from tierwise.predict import ModelError
from tierwise.predict.model_error import own_file
from tierwise.recording.outputs import require_writable, write_file
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.document import Table, table


class RoundProgress(ConsoleProgress):
    """Draws finished cases of a round, as an observer of ``runner.run``."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; if it is not a terminal, print one line for each slot."""
        super().__init__(console)
        self._name = ""
        self._started = 0

    def round_started(self, folder: Path, cases: int, estimated_s: float) -> None:
        """Print the estimated time."""
        self._print(f"{cases} cases to run, about {estimated_s / 60:.0f} min; slots in {folder}")
        self._bar.update(self._task, total=cases, completed=0)

    def case_started(self, case: Case) -> None:
        """Show the current case."""
        self._name = case.name
        self._bar.update(self._task, completed=self._started)
        self._started += 1

    def phase_started(self, what: str) -> None:
        """Show its phase."""
        self._bar.update(self._task, description=f"{self._name}: {what}")

    def slot_finished(self, row: Row) -> None:
        """Print a line if no bar can be drawn or the slot does not count."""
        for warning in row.cold_start.warnings if row.cold_start else []:
            self._print(f"  {row.run_id}: not cold: {warning}")
        if row.status == "ok" and self._console.is_terminal:
            return
        problems = f" ({'; '.join(row.problems)})" if row.problems else ""
        rate = row.rate_per_s
        figure = "" if rate is None else f" {significant(rate, 4)} {'jobs' if row.laps else 'transactions'}/s"
        self._print(f"  {row.run_id}: {row.status}{figure}{problems}")


RESULTS = Path("results/validate")
ACCURACY_FILE = "accuracy.json"
PAGE_FILE = "accuracy.md"
CHART_FILE = "accuracy.svg"
_BARS_NOT_KEPT = 1

CaseNames = Annotated[
    list[str] | None, typer.Option("--case", help="run the cases whose names begin with this")
]


def run(
    file: Annotated[
        Path | None, typer.Argument(help="file of cases; default: those that ship with tierwise")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="few cases")] = False,
    case: CaseNames = None,
    round: Annotated[
        Round,
        typer.Option(
            "--round", help="kind of round; prospective: the model is frozen at this commit, cases held back"
        ),
    ] = "building",
    time: Annotated[
        str | None, typer.Option(help="run the most telling cases that fit in this time, such as 40min")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="folder for slots and recordings")] = RESULTS,
    seed: Seed = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="delete earlier slots of the round")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="print the estimated time")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="judge the existing slots without running anything")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="folder for accuracy.md and its chart")] = None,
    publish: Annotated[Path | None, typer.Option(help="copy the slots to this folder, without paths")] = None,
    recordings: Annotated[
        str | None, typer.Option(help="also publish the smallest recordings, redacted, up to 20M")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="calibrate the intervals of predictions with the errors of building rounds"
        ),
    ] = False,
    drop_caches: DropCaches = False,
    scheduler: Scheduler = None,
    trust_scheduler: TrustScheduler = False,
    workers: Workers = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Measure the error of predictions: record, predict, measure in slots, compare.

    An interrupted round is resumed. Exit status 1 if a target is missed.
    """
    require("lab", "validate")
    of_a_round = {
        str(file): file, "--quick": quick, "--case": case, "--round": round != "building", "--time": time,
        "--seed": seed is not None, "--fresh": fresh, "--estimate": estimate, "--drop-caches": drop_caches,
    }  # fmt: skip
    if judge_only and (unheeded := next((name for name, given in of_a_round.items() if given), None)):
        raise TierwiseError(
            f"{unheeded} is for a round, and --judge-only runs none",
            "leave it out; --output names the folder of the slots to judge",
        )
    if recordings is not None and publish is None:
        raise TierwiseError("--recordings says what --publish copies", "add --publish, or leave it out")
    if scheduler not in (None, LOCAL):
        check(scheduler, "--scheduler", trust_scheduler)  # rather than after hours of measuring
    for written in (output / ACCURACY_FILE, (page or output) / PAGE_FILE, publish and publish / PAGE_FILE):
        require_writable(None if estimate else written)
    console = printing.console()
    if not judge_only:
        spec = load(file)
        cases, left_out = _chosen(spec, file, case, quick=quick, round=round)
        for what, why in left_out.items():
            console.print(f"left out: {what}: {why}", highlight=False, soft_wrap=True)
        rows = [] if fresh else read_rows(output)
        if time is not None:
            cases = runner.most_telling(cases, spec, rows, parse_duration_s(time, "--time"))
        if estimate:
            for planned in cases:
                planned.check()
            minutes = sum(runner.estimate_s(planned, spec, rows) for planned in cases) / 60
            console.print(f"{numbers.counted(len(cases), 'case')}: about {minutes:.0f} min", highlight=False)
            return
        begun: dict[str, Any] = {"round": round, "seed": seed, "fresh": fresh}
        _run(spec, cases, output, left_out=left_out, drop_caches=drop_caches, **begun)
    rounds = judging.rounds_in(output)
    with (
        distributed(scheduler, workers, trusted=trust_scheduler) as distribute,
        progress_console().status("predicting") as status,
    ):
        accuracy, calibrated = judging.judge(rounds, status.update, distribute=distribute)
    show(_document(accuracy), {"accuracy": accuracy}, "accuracy", format)
    _write(page or output, output, accuracy, [row for round_data in rounds for row in round_data.rows])
    kept_bytes = parse_size_bytes(recordings, "--recordings") if recordings else 0
    for folder in judging.publish(rounds, publish, kept_bytes) if publish else []:
        printing.echo(f"published: {folder}")
    if calibrate:
        _calibrate(calibrated)
    if not accuracy.passed:
        raise typer.Exit(_BARS_NOT_KEPT)


def _chosen(
    spec: ValidationSpec, file: Path | None, names: Sequence[str] | None, *, quick: bool, round: Round
) -> tuple[list[Case], dict[str, str]]:
    """As ``cases_of``; refuses a choice of none."""
    if quick and names:
        raise TierwiseError("--quick and --case both choose cases", "give one of the two")
    chosen, left_out = cases_of(
        spec, names or (spec.quick if quick else []), held_back=round == "prospective"
    )
    if chosen or left_out:
        return chosen, left_out
    kind = "with held_back = true" if round == "prospective" else "without held_back"
    raise TierwiseError(
        f"{file or SHIPPED} has no case to run in a {round} round",
        f"add one {kind}, or name another --round",
    )


def _run(spec: ValidationSpec, cases: Sequence[Case], out: Path, **begun: Any) -> None:
    for line in clean.clean_before(warn):
        printing.echo(f"cleaned up: {line}")
    with RoundProgress(progress_console()) as progress:
        runner.run(spec, cases, out.absolute(), progress, **begun)


def _document(accuracy: Accuracy) -> list[Table]:
    blocks: list[Table] = []
    for name in dict.fromkeys(pair.round for pair in accuracy.pairs):
        blocks.append(table(COLUMNS[:1], COLUMNS[1:], f"{name} round"))
        for row in summary_rows(accuracy, name):
            blocks[-1].add(*row)
    return blocks


def _write(directory: Path, out: Path, accuracy: Accuracy, rows: Sequence[Row]) -> None:
    answered = [pair for pair in accuracy.predictions if pair.predicted is not None]
    write_file(out / ACCURACY_FILE, accuracy.model_dump_json(indent=1).encode())
    text = accuracy_page(accuracy, rows, CHART_FILE if answered else None)
    page = write_file(directory / PAGE_FILE, text.encode())
    if answered:
        drawing = to_svg(accuracy_chart(answered, WIDE), "accuracy", "Predicted against measured")
        write_file(directory / CHART_FILE, drawing.encode())
    printing.echo(f"written: {page}")


def _calibrate(calibrated: ModelError) -> None:
    if not calibrated.errors:
        raise TierwiseError("--calibrate: nothing was compared while building", "run a building round first")
    written = write_file(own_file(), to_toml(calibrated).encode())
    printing.echo(f"calibrated: {written}; predictions use it from now on")
