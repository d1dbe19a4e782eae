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
from tierwise.recording.outputs import require_writable, write_file
from tierwise.report.document import Block, Document, Page, Section, Text, Tone, flat
from tierwise.report.render import to_csv, to_html_page, to_markdown, to_rich

_WIDEST = 1000
Content = BaseModel | Mapping[str, Any]
"""A model, whose fields are printed, or values by name: models, dataclasses, and what JSON has."""


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MD = "md"


FormatOption = Annotated[Format, typer.Option("--format", help="format of the output")]


def show(document: Document, content: Content, schema: str, format: Format) -> None:
    """Print a result; beside CSV, which has tables alone, its first texts go to standard error.

    Args:
        document: the result for people and, by its tables, for spreadsheets.
    """
    if format is Format.JSON:
        printing.echo(as_json(content, schema))
    elif format is Format.CSV:
        for block in flat(document):
            if not isinstance(block, Text):
                break
            if block.tone in (Tone.HEADLINE, Tone.WARNING):
                printing.echo(block.text, err=True)
        printing.echo(to_csv(document), nl=False)
    elif format is Format.MD:
        printing.echo(to_markdown(document), nl=False)
    else:
        print_document(document)


def print_document(document: Document, console: Console | None = None) -> None:
    """Print a document as text; a table wider than the terminal keeps its figures uncut.

    Without ``--verbose``, a folded section is one line that names it.
    """
    console = console or printing.console()
    for part in to_rich(document if SETTINGS.verbose else [*map(_folded_away, document)]):
        widest = console.options.update(max_width=_WIDEST)
        needed = Measurement.get(console, widest, part).minimum if isinstance(part, Table) else 0
        is_line = isinstance(part, RichText) and not console.is_terminal  # lines in a pipe are whole
        console.print(part, highlight=False, width=max(console.width, needed), crop=False, soft_wrap=is_line)


def _folded_away(block: Block) -> Block:
    if isinstance(block, Section) and block.folded:
        return Text(f"{block.title}: tierwise --verbose COMMAND shows them", Tone.QUIET)
    return block


def as_json(content: Content, schema: str) -> str:
    """Values preceded by their kind and its version."""
    values = to_jsonable_python(content)
    return json.dumps({"schema": schema, "schema_version": SCHEMA_VERSION, **values}, indent=2)


def warn(text: str) -> None:
    """Print a warning to standard error."""
    printing.complain(f"warning: {text}")


def file_option(*names: str, help: str) -> Any:
    """An option for a file to write, which is tried before the command begins."""
    return typer.Option(*names, help=help, callback=require_writable)


OutputFile = Annotated[Path | None, file_option("-o", "--output", help="file to write")]
Png = Annotated[Path | None, file_option("--png", help="file to draw the chart into")]


def require_profile_name(output: Path | None) -> None:
    """Refuse a file for a profile that no command would take for one."""
    if output is not None and output.suffix != ".toml":
        raise TierwiseError(f"--output: {str(output)!r} is no profile", "name a file that ends in .toml")


def require_html(output: Path | None) -> None:
    """Refuse a file for a page that is not named as one."""
    if output is not None and output.suffix != ".html":
        raise TierwiseError(f"--output: {str(output)!r} is no page", "name a file that ends in .html")


def write_page(path: Path, page: Page | str, *, err: bool) -> None:
    """Write a page, as a document or in HTML, and print its path, to standard error if ``err``."""
    html = page if isinstance(page, str) else to_html_page(page)
    printing.echo(f"page: {write_file(path, html.encode())}", err=err)


@contextmanager
def simulations(predictor: Predictor, console: Console) -> Iterator[None]:
    """Draw the remaining simulations of a ranking or an advice on a terminal; remove the bar at the end."""
    with counted("simulating", console) as progress:
        predictor.replayer.progress = progress
        yield


@contextmanager
def counted(what: str, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Draw on a terminal how many of all are done, as the given function is told."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
