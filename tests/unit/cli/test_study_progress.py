"""What a study prints while it runs."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.lab.cli import study
from tierwise.lab.cli.progress import StudyProgress


def test_the_directory_of_the_results_stays_on_its_line() -> None:
    text, directory = StringIO(), Path("out [red]", "a-study", "x" * 100)
    with StudyProgress(Console(file=text, width=80)) as progress:
        progress.study_started(directory, seed=1, total=4, finished=0)
    assert text.getvalue().splitlines() == [f"a-study: 4 runs, seed 1; results in {directory}"]


def test_an_interrupted_study_says_how_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study.clean, "clean_before_operation", lambda _: [])
    monkeypatch.setattr(study.runner, "run_study", interrupted)
    ended = CliRunner().invoke(app, ["--quiet", "study", "run", "redo-placement"])
    assert ended.exit_code != 0
    assert "interrupted: the same command without --fresh goes on with the next run" in ended.stderr
