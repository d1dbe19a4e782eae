"""``tierwise report``, and how other commands show the answer of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tierwise.errors import TierwiseError
from tierwise.lab import RESULTS_FILE, STUDY_FILE
from tierwise.report.answer import Answer, build_answer
from tierwise.report.charts import WIDE, figures_of, to_png
from tierwise.report.page import render_page
from tierwise.report.tables import answer_tables
from tierwise.result_files import read_results, read_study_info

REPORT_FILE = "report.html"

Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="file of the page; beside the results if not given")
]
Png = Annotated[Path | None, typer.Option(help="also write every chart as a PNG into this directory")]


def report(
    results_dir: Annotated[Path, typer.Argument(help="directory that a study wrote its results to")],
    out: Out = None,
    png: Png = None,
) -> None:
    """Print the answer of a study and write its report, one HTML file that opens offline."""
    answer = read_answer(results_dir)
    _print(Console(), answer)
    typer.echo(f"report: {_write(out or results_dir / REPORT_FILE, render_page(answer).encode())}")
    if png is not None:
        for file in write_pngs(answer, png):
            typer.echo(f"chart: {file}")


def print_answer(console: Console, results_dir: Path) -> None:
    """Print the answer of the study whose results are in ``results_dir``."""
    _print(console, read_answer(results_dir))


def write_report(results_dir: Path) -> Path:
    """Write ``report.html`` beside the results and return its path."""
    return _write(results_dir / REPORT_FILE, render_page(read_answer(results_dir)).encode())


def write_pngs(answer: Answer, directory: Path) -> list[Path]:
    """Write every chart into ``directory``, made if need be; returns the files."""
    single = len(answer.comparisons) == 1
    return [
        _write(directory / f"{name if single else f'{number}-{name}'}.png", to_png(figure.draw(WIDE)))
        for number, comparison in enumerate(answer.comparisons, start=1)
        for name, figure in figures_of(comparison).items()
    ]


def read_answer(results_dir: Path) -> Answer:
    """Work out the answer from the files of ``results_dir``.

    Raises:
        TierwiseError: if they are missing or not what a study writes.
    """
    info = read_study_info(results_dir / STUDY_FILE)
    return build_answer(read_results(results_dir / RESULTS_FILE), info)


def _print(console: Console, answer: Answer) -> None:
    for part in answer_tables(answer):
        console.print(part)


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "name a place that you may write to") from error
    return path
