"""The answer in the terminal, and the command that prints it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import typer
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from support.results_factory import INFO, study_runs
from tierwise.cli.output import print_document
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.cli import report
from tierwise.lab.report.study.study_document import study_answer_document
from tierwise.model.errors import TierwiseError
from tierwise.report.document import Cell, Column, Section, Table, Text, Tone, empty_table
from tierwise.report.render import to_markdown
from tierwise.results import RunResult, StudyInfo
from tierwise.results.result_files import append_record, write_study_info

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def shown(runs: list[RunResult], info: StudyInfo = INFO, columns: int = 80) -> str:
    console = Console(width=columns, file=io.StringIO(), force_terminal=True, color_system=None)
    print_document(study_answer_document(build_study_answer(runs, info)), console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(study_runs(), id="five repeats"),
        pytest.param(study_runs(repeats=3, elapsed_s={"log-ssd": 42.0}), id="three repeats"),
        pytest.param(study_runs(repeats=1), id="one repeat"),
        pytest.param(study_runs(status="failed", problems=["no space left on device"]), id="failed"),
        pytest.param(
            study_runs(setting={"clients": "1"}) + study_runs(setting={"clients": "9"}), id="two settings"
        ),
    ],
)
def test_table_fits_80_columns(runs: list[RunResult], snapshot: SnapshotAssertion) -> None:
    text = shown(runs)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    assert text == snapshot


def test_a_name_of_any_characters_is_one_line_and_whole() -> None:
    listing = empty_table([], ["size"], names=["recording"])
    for name in ("two\nlines", "red\x1b[31mend"):
        listing.add(Cell(name), Cell("1 KiB"))
    console = Console(width=20, file=io.StringIO())
    print_document([listing], console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split() for line in text.splitlines()] == [
        ["recording", "size"],
        ["two?lines", "1", "KiB"],
        ["red?[31mend", "1", "KiB"],
    ]


@pytest.fixture
def results_dir(tmp_path: Path) -> Path:
    for result in study_runs():
        append_record(tmp_path / report.RESULTS_FILE, result)
    write_study_info(tmp_path / report.STUDY_FILE, INFO)
    return tmp_path


@pytest.mark.usefixtures("drawn")
def test_command_prints_the_answer_and_writes_page_and_pictures(results_dir: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(report.report)
    out, png = tmp_path / "deep" / "page.html", tmp_path / "png"
    done = CliRunner().invoke(app, [str(results_dir), "-o", str(out), "--png", str(png)])
    assert done.exit_code == 0, done.output
    assert "Move the log first." in done.output
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert {file.stem for file in png.iterdir()} == {
        "elapsed", "speedup", "waits", "io", "bytes", "requests", "latency", "paper", "order",
    }  # fmt: skip
    assert all(file.read_bytes().startswith(PNG_MAGIC) for file in png.iterdir())


def test_missing_results_are_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"study\.json"):
        report.read_study_results(tmp_path)
    write_study_info(tmp_path / report.STUDY_FILE, INFO)
    with pytest.raises(TierwiseError, match=r"results\.jsonl"):
        report.read_study_results(tmp_path)


def test_page_that_cannot_be_written_is_an_error(results_dir: Path) -> None:
    (results_dir / report.REPORT_FILE).mkdir()
    with pytest.raises(TierwiseError, match=r"report\.html"):
        answer = build_study_answer(*report.read_study_results(results_dir))
        report.write_study_page(answer, results_dir / report.REPORT_FILE)


def test_a_title_stands_apart_from_the_text_before_it() -> None:
    """The text of ``fleet --share`` ran on into the title of its next section."""
    console = Console(width=80, file=io.StringIO())
    print_document([Text("Before."), Section("Title", [Text("After.")], label="Label")], console)
    printed: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed == "Before.\n\nLabel\nTitle\nAfter.\n"


def test_names_are_no_markup_in_markdown() -> None:
    table = Table([Column("file")], [[Cell("[log](https://example.com) <img src=x>")]])
    markdown = to_markdown([Text("at <b>least</b> 3 < 4", Tone.WARNING), table])
    assert markdown.startswith(r"at \<b>least\</b> 3 < 4")
    assert r"[log]\(https://example.com) \<img src=x>" in markdown
