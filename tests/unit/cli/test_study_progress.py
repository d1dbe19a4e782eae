"""What a study prints while it runs."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from tierwise.lab.cli.progress import StudyProgress


def test_the_directory_of_the_results_stays_on_its_line() -> None:
    text, directory = StringIO(), Path("out [red]", "a-study", "x" * 100)
    with StudyProgress(Console(file=text, width=80)) as progress:
        progress.study_started(directory, seed=1, total=4, finished=0)
    assert text.getvalue().splitlines() == [f"a-study: 4 runs, seed 1; results in {directory}"]
