"""``tierwise compare``."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

import typer

from tierwise.cli.output import OutputFile, json_with_kind, print_document
from tierwise.cli.printing import print_text, printable_console
from tierwise.lab.analysis.results_comparison import ResultsComparison, compare_results
from tierwise.lab.report.comparison_document import compare_document, compare_page, to_csv
from tierwise.lab.studies.runner.study_runner import RESULTS_FILE
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.recording import ABOUT_FILE, OBSERVATION_FILE
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.render import to_html_page, to_markdown
from tierwise.results import RunResult
from tierwise.results.result_files import latest_results, read_results

Format = Literal["text", "md", "csv", "json", "html"]
_FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".md": "md",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
}
_SET = "directory of results, or results.jsonl; PATH:ENGINE takes the runs of one engine"


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=_SET)],
    b: Annotated[str, typer.Argument(metavar="B", help=_SET)],
    format: Annotated[
        Format | None,
        typer.Option("--format", help="format of the output; default: by the suffix of --output"),
    ] = None,
    output: OutputFile = None,
) -> None:
    """Compare two sets of results: ratios with intervals, by run, lap and role, and what else differed.

    Recordings before and after a move are compared by tierwise verify.
    """
    require_extra("report", "compare", ["numpy"])
    chosen = format or ("text" if output is None else _format_of(output))
    comparison = compare_results(read_result_set(a), read_result_set(b), (a, b))
    if output is None and chosen == "text":
        print_document(compare_document(comparison))
        return
    text = comparison_text(comparison, chosen)
    if output is None:
        print_text(text, nl=False)
    else:
        print_text(f"comparison: {write_output_file(output, text.encode())}")


def comparison_text(comparison: ResultsComparison, format: Format) -> str:
    """A comparison as text in a format."""
    match format:
        case "text":
            text = StringIO()
            print_document(compare_document(comparison), printable_console(file=text))
            return text.getvalue()
        case "json":
            return json_with_kind(comparison, "comparison") + "\n"
        case "csv":
            return to_csv(comparison)
        case "html":
            return to_html_page(compare_page(comparison))
        case "md":
            return to_markdown(compare_document(comparison))


def _format_of(output: Path) -> Format:
    if output.suffix not in _FORMATS:
        raise TierwiseError(
            f"--output: the suffix of {str(output)!r} is no format",
            f"name a file that ends in {', '.join(_FORMATS)}, or give --format",
        )
    return _FORMATS[output.suffix]


def read_result_set(name: str) -> list[RunResult]:
    """The runs of a directory or file; if ``name`` ends in a colon and an engine, only its runs."""
    path, engine = Path(name), ""
    if any((path / file).is_file() for file in (ABOUT_FILE, OBSERVATION_FILE)):
        raise TierwiseError(
            f"{name}: a recording, and compare takes results of studies",
            f"tierwise verify FORECAST.json {name} compares a forecast with it, and says why they differ",
        )
    if not path.exists() and ":" in name:
        before, _, engine = name.rpartition(":")
        path = Path(before)
    folders = [path, latest_results(path)]
    below = [folder / RESULTS_FILE for folder in folders if folder is not None]
    file = path if path.is_file() else next((file for file in below if os.path.lexists(file)), None)
    if file is None:
        raise TierwiseError(
            f"{name}: no results there", "name a directory that a study has written, or its results.jsonl"
        )
    runs = [run for run in read_results(file, in_folder=file != path) if engine in ("", run.engine.name)]
    if not runs:
        raise TierwiseError(
            f"{name}: no run of engine {engine!r}" if engine else f"{name}: no run",
            "name results that have runs",
        )
    return runs
