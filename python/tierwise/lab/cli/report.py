"""``tierwise report``, and the display of studies' answers for other commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.output import FormatOption, OutputFormat, print_result
from tierwise.cli.printing import print_text
from tierwise.lab.analysis.study_answer import StudyAnswer, build_study_answer
from tierwise.lab.report.charts.study_charts import study_figures, sweep_figures
from tierwise.lab.report.fault_report import frontier_charts
from tierwise.lab.report.study.study_document import study_answer_document
from tierwise.lab.report.study.study_page import StudyChapter, combined_studies_page, study_answer_page
from tierwise.lab.studies.runner.study_runner import RESULTS_FILE, STUDY_FILE
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.recording.command_outputs import require_writable_output, write_output_file
from tierwise.report.charts import WIDE, to_png
from tierwise.report.render import to_html_page
from tierwise.results import RunResult, StudyInfo
from tierwise.results.result_files import latest_results, read_results, read_study_info

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
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Print the answer of a study and write its report, one HTML file that opens offline.

    For a directory of many studies: one report with a section for each.
    """
    require_extra("report", "report")
    file = output or results_dir / REPORT_FILE
    studies = latest_studies_in(results_dir)
    if studies:
        if png is not None or format is not OutputFormat.TEXT:
            raise TierwiseError(
                f"{'--png' if png is not None else '--format'}: {results_dir} holds the results of "
                f"{numbers.counted_noun(len(studies), 'study', 'studies')}, of which only a page is written",
                f"name one of them, for example {studies[0]}",
            )
        require_writable_output(_combined_report_path(file))
        page = write_combined_report([study_chapter_of(directory) for directory in studies], file)
        print_text(f"report: {page}", err=format is not OutputFormat.TEXT)
        return
    runs, info = read_study_results(results_dir)
    require_writable_output(file)
    require_writable_output(png and png / "chart.png")
    answer = build_study_answer(runs, info)
    print_result(study_answer_document(answer), {"answer": answer}, "answer", format)
    print_text(f"report: {write_study_page(answer, file)}", err=format is not OutputFormat.TEXT)
    if png is not None:
        for chart in write_chart_pngs(answer, png):
            print_text(f"chart: {chart}", err=format is not OutputFormat.TEXT)


def latest_studies_in(directory: Path) -> list[Path]:
    """The latest results of every study below a directory; none if the directory is a study's own."""
    if os.path.lexists(directory / STUDY_FILE) or not directory.is_dir():
        return []
    below = sorted(path for path in directory.iterdir() if path.is_dir() and not path.is_symlink())
    latest = [latest_results(path) or path for path in below]
    return [path for path in latest if os.path.lexists(path / STUDY_FILE)]


def write_combined_report(chapters: Sequence[StudyChapter], out: Path) -> Path:
    """Write one page with a section for each study to a file, or as ``report.html`` into a directory."""
    return write_output_file(
        _combined_report_path(out), to_html_page(combined_studies_page(chapters)).encode()
    )


def _combined_report_path(out: Path) -> Path:
    return out if out.suffix and not out.is_dir() else out / REPORT_FILE


def write_study_page(answer: StudyAnswer, file: Path) -> Path:
    """Write the page of a study and return its path."""
    return write_output_file(file, to_html_page(study_answer_page(answer)).encode())


def write_chart_pngs(answer: StudyAnswer, directory: Path) -> list[Path]:
    """Write every chart into ``directory``, created if needed; return the files."""
    if answer.power_cuts:
        drawn = frontier_charts(answer.power_cuts, answer.study.baseline)
        return [
            write_output_file(directory / f"{figure.name}.png", to_png(figure.draw(WIDE))) for figure in drawn
        ]
    single = len(answer.comparisons) == 1
    charts = {
        name if single else f"{number}-{name}": figure
        for number, comparison in enumerate(answer.comparisons, start=1)
        for name, figure in study_figures(comparison).items()
    }
    for number, sweep in enumerate(answer.sweeps, start=1):
        figures = sweep_figures(sweep, answer.study.baseline)
        charts |= {f"sweep-{number}-{name}": figure for name, figure in figures.items()}
    return [
        write_output_file(directory / f"{name}.png", to_png(chart.draw(WIDE)))
        for name, chart in charts.items()
    ]


def read_study_results(results_dir: Path) -> tuple[list[RunResult], StudyInfo]:
    """The runs of a study and what a report needs besides."""
    info = read_study_info(results_dir / STUDY_FILE)
    return read_results(results_dir / RESULTS_FILE, study=info.name), info


def study_chapter_of(directory: Path) -> StudyChapter:
    """The section of a study; if its results are unreadable or have no run, it says why."""
    name = directory.parent.name if latest_results(directory.parent) == directory else directory.name
    try:
        info = read_study_info(directory / STUDY_FILE)
        name = info.name
        answer = build_study_answer(read_results(directory / RESULTS_FILE, study=info.name), info)
        return StudyChapter(name, info.question, answer)
    except TierwiseError as error:
        return StudyChapter(name, problem=str(error))
