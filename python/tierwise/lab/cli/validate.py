"""``tierwise validate``: compares predictions with measurements, and shows its progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tierwise.cli import printing
from tierwise.cli.options import DropCaches, Scheduler, Seed, TrustScheduler, Workers, progress_console
from tierwise.cli.output import FormatOption, OutputFormat, print_result, print_warning
from tierwise.cluster.dask_executor import LOCAL, check_scheduler_address
from tierwise.cluster.simulations import distribution_to_cluster
from tierwise.host import clean
from tierwise.lab.cli.progress import ConsoleProgress
from tierwise.lab.report.accuracy_report import COLUMNS, accuracy_chart, accuracy_page, summary_rows
from tierwise.lab.validation import round_judging, validation_round
from tierwise.lab.validation.calibration import calibration_toml
from tierwise.lab.validation.prediction_accuracy import PredictionAccuracy
from tierwise.lab.validation.slot_rows import Round, SlotRow, read_slot_rows
from tierwise.lab.validation.validation_case import ValidationCase, cases_to_run
from tierwise.lab.validation.validation_spec import SHIPPED, ValidationSpec, load_validation
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.units import parse_duration_s, parse_size_bytes, significant_text
from tierwise.predict import ModelError
from tierwise.predict.model_error import own_file
from tierwise.recording.command_outputs import require_writable_output, write_output_file
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.document import Table, empty_table


class RoundProgress(ConsoleProgress):
    """Draws finished cases of a round, as an observer of ``validation_round.run_round``."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; if it is not a terminal, print one line for each slot."""
        super().__init__(console)
        self._name = ""
        self._started = 0

    def round_started(self, folder: Path, cases: int, estimated_s: float) -> None:
        """Print the estimated time."""
        self._print(f"{cases} cases to run, about {estimated_s / 60:.0f} min; slots in {folder}")
        self._bar.update(self._task, total=cases, completed=0)

    def case_started(self, case: ValidationCase) -> None:
        """Show the current case."""
        self._name = case.name
        self._bar.update(self._task, completed=self._started)
        self._started += 1

    def phase_started(self, what: str) -> None:
        """Show its phase."""
        self._bar.update(self._task, description=f"{self._name}: {what}")

    def slot_finished(self, row: SlotRow) -> None:
        """Print a line if no bar can be drawn or the slot does not count."""
        for warning in row.cold_start.warnings if row.cold_start else []:
            self._print(f"  {row.run_id}: not cold: {warning}")
        if row.status == "ok" and self._console.is_terminal:
            return
        problems = f" ({'; '.join(row.problems)})" if row.problems else ""
        rate = row.rate_per_s
        figure = (
            "" if rate is None else f" {significant_text(rate, 4)} {'jobs' if row.laps else 'transactions'}/s"
        )
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
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Measure the error of predictions: record, predict, measure in slots, compare.

    An interrupted round is resumed. Exit status 1 if a target is missed.
    """
    require_extra("lab", "validate")
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
        check_scheduler_address(
            scheduler, "--scheduler", trust_scheduler
        )  # rather than after hours of measuring
    for written in (output / ACCURACY_FILE, (page or output) / PAGE_FILE, publish and publish / PAGE_FILE):
        require_writable_output(None if estimate else written)
    console = printing.printable_console()
    if not judge_only:
        spec = load_validation(file)
        cases, left_out = _chosen(spec, file, case, quick=quick, round=round)
        for what, why in left_out.items():
            console.print(f"left out: {what}: {why}", highlight=False, soft_wrap=True)
        rows = [] if fresh else read_slot_rows(output)
        if time is not None:
            cases = validation_round.most_informative_cases(
                cases, spec, rows, parse_duration_s(time, "--time")
            )
        if estimate:
            for planned in cases:
                planned.check()
            minutes = sum(validation_round.estimated_time_s(planned, spec, rows) for planned in cases) / 60
            console.print(
                f"{numbers.counted_noun(len(cases), 'case')}: about {minutes:.0f} min", highlight=False
            )
            return
        begun: dict[str, Any] = {"round": round, "seed": seed, "fresh": fresh}
        _run(spec, cases, output, left_out=left_out, drop_caches=drop_caches, **begun)
    rounds = round_judging.rounds_in(output)
    with (
        distribution_to_cluster(scheduler, workers, trusted=trust_scheduler) as distribute,
        progress_console().status("predicting") as status,
    ):
        accuracy, calibrated = round_judging.judge_rounds(rounds, status.update, distribute=distribute)
    print_result(_document(accuracy), {"accuracy": accuracy}, "accuracy", format)
    _write(page or output, output, accuracy, [row for round_data in rounds for row in round_data.rows])
    kept_bytes = parse_size_bytes(recordings, "--recordings") if recordings else 0
    for folder in round_judging.publish_rounds(rounds, publish, kept_bytes) if publish else []:
        printing.print_text(f"published: {folder}")
    if calibrate:
        _calibrate(calibrated)
    if not accuracy.passed:
        raise typer.Exit(_BARS_NOT_KEPT)


def _chosen(
    spec: ValidationSpec, file: Path | None, names: Sequence[str] | None, *, quick: bool, round: Round
) -> tuple[list[ValidationCase], dict[str, str]]:
    """As ``cases_to_run``; refuses a choice of none."""
    if quick and names:
        raise TierwiseError("--quick and --case both choose cases", "give one of the two")
    chosen, left_out = cases_to_run(
        spec, names or (spec.quick if quick else []), held_back=round == "prospective"
    )
    if chosen or left_out:
        return chosen, left_out
    kind = "with held_back = true" if round == "prospective" else "without held_back"
    raise TierwiseError(
        f"{file or SHIPPED} has no case to run in a {round} round",
        f"add one {kind}, or name another --round",
    )


def _run(spec: ValidationSpec, cases: Sequence[ValidationCase], out: Path, **begun: Any) -> None:
    for line in clean.clean_before_operation(print_warning):
        printing.print_text(f"cleaned up: {line}")
    with RoundProgress(progress_console()) as progress:
        validation_round.run_round(spec, cases, out.absolute(), progress, **begun)


def _document(accuracy: PredictionAccuracy) -> list[Table]:
    blocks: list[Table] = []
    for name in dict.fromkeys(pair.round for pair in accuracy.pairs):
        blocks.append(empty_table(COLUMNS[:1], COLUMNS[1:], f"{name} round"))
        for row in summary_rows(accuracy, name):
            blocks[-1].add(*row)
    return blocks


def _write(directory: Path, out: Path, accuracy: PredictionAccuracy, rows: Sequence[SlotRow]) -> None:
    answered = [pair for pair in accuracy.predictions if pair.predicted is not None]
    write_output_file(out / ACCURACY_FILE, accuracy.model_dump_json(indent=1).encode())
    text = accuracy_page(accuracy, rows, CHART_FILE if answered else None)
    page = write_output_file(directory / PAGE_FILE, text.encode())
    if answered:
        drawing = to_svg(accuracy_chart(answered, WIDE), "accuracy", "Predicted against measured")
        write_output_file(directory / CHART_FILE, drawing.encode())
    printing.print_text(f"written: {page}")


def _calibrate(calibrated: ModelError) -> None:
    if not calibrated.errors:
        raise TierwiseError("--calibrate: nothing was compared while building", "run a building round first")
    written = write_output_file(own_file(), calibration_toml(calibrated).encode())
    printing.print_text(f"calibrated: {written}; predictions use it from now on")
