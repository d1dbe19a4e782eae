"""Output of commands: text, JSON, CSV, Markdown, files, progress bars."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text as RichText

from tierwise.cli import printing
from tierwise.cli.options import SETTINGS
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import SCHEMA_VERSION
from tierwise.predict import Predictor
from tierwise.recording.command_outputs import require_writable_output, write_output_file
from tierwise.report.document import Block, Document, Page, Section, Text, Tone, flat_blocks
from tierwise.report.render import to_csv, to_html_page, to_markdown, to_rich

_WIDEST = 1000
Content = BaseModel | Mapping[str, Any]
"""A model, whose fields are printed, or values by name: models, dataclasses, and what JSON has."""


class OutputFormat(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MD = "md"


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="format of the output")]


def print_result(document: Document, content: Content, schema: str, format: OutputFormat) -> None:
    """Print a result; beside CSV, which has tables alone, its first texts go to standard error."""
    if format is OutputFormat.JSON:
        printing.print_text(json_with_kind(content, schema))
    elif format is OutputFormat.CSV:
        for block in flat_blocks(document):
            if not isinstance(block, Text):
                break
            if block.tone in (Tone.HEADLINE, Tone.WARNING):
                printing.print_text(block.text, err=True)
        printing.print_text(to_csv(document), nl=False)
    elif format is OutputFormat.MD:
        printing.print_text(to_markdown(document), nl=False)
    else:
        print_document(document)


def print_document(document: Document, console: Console | None = None) -> None:
    """Print a document as text; a table wider than the terminal keeps its figures uncut.

    Without ``--verbose``, a folded section is one line that names it.
    """
    console = console or printing.printable_console()
    for part in to_rich(document if SETTINGS.verbose else [*map(_without_folded_parts, document)]):
        widest = console.options.update(max_width=_WIDEST)
        needed = Measurement.get(console, widest, part).minimum if isinstance(part, Table) else 0
        is_line = isinstance(part, RichText) and not console.is_terminal  # lines in a pipe are whole
        console.print(part, highlight=False, width=max(console.width, needed), crop=False, soft_wrap=is_line)


def _without_folded_parts(block: Block) -> Block:
    if isinstance(block, Section) and block.folded:
        return Text(f"{block.title}: tierwise --verbose COMMAND shows them", Tone.QUIET)
    return block


def json_with_kind(content: Content, schema: str) -> str:
    """Values preceded by their kind and its version."""
    values = to_jsonable_python(content)
    return json.dumps({"schema": schema, "schema_version": SCHEMA_VERSION, **values}, indent=2)


def print_warning(text: str) -> None:
    """Print a warning to standard error."""
    printing.print_error(f"warning: {text}")


def output_file_option(*names: str, help: str) -> Any:
    """An option for a file to write, which is tried before the command begins."""
    return typer.Option(*names, help=help, callback=require_writable_output)


OutputFile = Annotated[Path | None, output_file_option("-o", "--output", help="file to write")]
Png = Annotated[Path | None, output_file_option("--png", help="file to draw the chart into")]


def require_suffix(output: Path | None, suffix: str, what: str) -> None:
    """Refuse a file of ``--output`` that no program would take for a profile, or for a page."""
    if output is not None and output.suffix != suffix:
        raise TierwiseError(f"--output: {str(output)!r} is no {what}", f"name a file that ends in {suffix}")


def write_page(path: Path, page: Page | str, *, err: bool) -> None:
    """Write a page, as a document or in HTML, and print its path, to standard error if ``err``."""
    html = page if isinstance(page, str) else to_html_page(page)
    printing.print_text(f"page: {write_output_file(path, html.encode())}", err=err)


@contextmanager
def simulation_progress(predictor: Predictor, console: Console) -> Iterator[None]:
    """Draw the remaining simulations of a ranking or an advice on a terminal; remove the bar at the end."""
    with progress_counter("simulating", console) as progress:
        predictor.replayer.progress = progress
        yield


@contextmanager
def progress_counter(what: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Draw on a terminal how many of all are done, as the given function is told."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
