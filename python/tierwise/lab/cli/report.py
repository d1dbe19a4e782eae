"""``tierwise report``, and the display of studies' answers for other commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.output import Format, FormatOption, show
from tierwise.cli.printing import echo
from tierwise.lab.analysis.answer import Answer, build_answer
from tierwise.lab.report.charts.comparison import figures_of, figures_of_sweep
from tierwise.lab.report.durability import frontier_charts
from tierwise.lab.report.study.document import answer_document
from tierwise.lab.report.study.page import Chapter, answer_page, combined_page
from tierwise.lab.studies.runner.session import RESULTS_FILE, STUDY_FILE
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require
from tierwise.recording.outputs import require_writable, write_file
from tierwise.report.charts import WIDE, to_png
from tierwise.report.render import to_html_page
from tierwise.results import RunResult, StudyInfo
from tierwise.results.files import latest_in, read_results, read_study_info

REPORT_FILE = "report.html"

Out = Annotated[
    Path | None, typer.Option("-o", "--output", help="file for the page; default: beside the results")
]
Png = Annotated[
    Path | None, typer.Option("--png", help="also write every chart as a PNG into this directory")
]


def report(
    results_dir: Annotated[Path, typer.Argument(help="directory of a study's results, or of many studies")],
    output: Out = None,
    png: Png = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Print the answer of a study and write its report, one HTML file that opens offline.

    For a directory of many studies: one report with a section for each.
    """
    require("report", "report")
    file = output or results_dir / REPORT_FILE
    studies = studies_in(results_dir)
    if studies:
        if png is not None or format is not Format.TEXT:
            raise TierwiseError(
                f"{'--png' if png is not None else '--format'}: {results_dir} holds the results of "
                f"{numbers.counted(len(studies), 'study', 'studies')}, of which only a page is written",
                f"name one of them, for example {studies[0]}",
            )
        require_writable(_file_of_many(file))
        page = write_combined_report([chapter_of(directory) for directory in studies], file)
        echo(f"report: {page}", err=format is not Format.TEXT)
        return
    runs, info = read_study(results_dir)
    require_writable(file)
    require_writable(png and png / "chart.png")
    answer = build_answer(runs, info)
    show(answer_document(answer), {"answer": answer}, "answer", format)
    echo(f"report: {write_report(answer, file)}", err=format is not Format.TEXT)
    if png is not None:
        for chart in write_pngs(answer, png):
            echo(f"chart: {chart}", err=format is not Format.TEXT)


def studies_in(directory: Path) -> list[Path]:
    """The latest results of every study below a directory; none if the directory is a study's own."""
    if os.path.lexists(directory / STUDY_FILE) or not directory.is_dir():
        return []
    below = sorted(path for path in directory.iterdir() if path.is_dir() and not path.is_symlink())
    latest = [latest_in(path) or path for path in below]
    return [path for path in latest if os.path.lexists(path / STUDY_FILE)]


def write_combined_report(chapters: Sequence[Chapter], out: Path) -> Path:
    """Write one page with a section for each study to a file, or as ``report.html`` into a directory."""
    return write_file(_file_of_many(out), to_html_page(combined_page(chapters)).encode())


def _file_of_many(out: Path) -> Path:
    return out if out.suffix and not out.is_dir() else out / REPORT_FILE


def write_report(answer: Answer, file: Path) -> Path:
    """Write the page of a study and return its path."""
    return write_file(file, to_html_page(answer_page(answer)).encode())


def write_pngs(answer: Answer, directory: Path) -> list[Path]:
    """Write every chart into ``directory``, created if needed; return the files."""
    if answer.power_cuts:
        drawn = frontier_charts(answer.power_cuts, answer.study.baseline)
        return [write_file(directory / f"{figure.name}.png", to_png(figure.draw(WIDE))) for figure in drawn]
    single = len(answer.comparisons) == 1
    charts = {
        name if single else f"{number}-{name}": figure
        for number, comparison in enumerate(answer.comparisons, start=1)
        for name, figure in figures_of(comparison).items()
    }
    for number, sweep in enumerate(answer.sweeps, start=1):
        figures = figures_of_sweep(sweep, answer.study.baseline)
        charts |= {f"sweep-{number}-{name}": figure for name, figure in figures.items()}
    return [write_file(directory / f"{name}.png", to_png(chart.draw(WIDE))) for name, chart in charts.items()]


def read_study(results_dir: Path) -> tuple[list[RunResult], StudyInfo]:
    """The runs of a study and what a report needs besides."""
    info = read_study_info(results_dir / STUDY_FILE)
    return read_results(results_dir / RESULTS_FILE, study=info.name), info


def chapter_of(directory: Path) -> Chapter:
    """The section of a study; if its results are unreadable or have no run, it says why."""
    name = directory.parent.name if latest_in(directory.parent) == directory else directory.name
    try:
        info = read_study_info(directory / STUDY_FILE)
        name = info.name
        answer = build_answer(read_results(directory / RESULTS_FILE, study=info.name), info)
        return Chapter(name, info.question, answer)
    except TierwiseError as error:
        return Chapter(name, problem=str(error))
