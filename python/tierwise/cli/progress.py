"""A progress bar for the lab."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tierwise.plan import RunPlan
from tierwise.results import RunResult


class LabProgress:
    """Draws the runs of a study as they finish, with the time left; an observer of the lab."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; where that is no terminal, a line a run."""
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False, compact=True),
            console=console,
            speed_estimate_period=3600,
            disable=not console.is_terminal,
        )
        self._run_id = ""
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and leave the terminal as it was."""
        self._bar.stop()

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None:
        """Say where results go and which seed decides the order."""
        kept = f", {finished} of {total} runs kept from before" if finished else ""
        self._console.print(
            f"{directory.parent.name}: {total} runs, seed {seed}{kept}; results in {directory}"
        )
        self._bar.update(self._task, total=total, completed=finished)

    def run_started(self, plan: RunPlan) -> None:
        """Name the run under way."""
        self._run_id = plan.run_id

    def phase_started(self, what: str) -> None:
        """Name the phase of the run."""
        self._bar.update(self._task, description=f"{self._run_id}: {what}")

    def run_finished(self, plan: RunPlan, result: RunResult) -> None:
        """Advance, and leave a line where a bar cannot be drawn or the run went wrong."""
        self._bar.advance(self._task)
        if result.status != "ok" or not self._console.is_terminal:
            took = "" if result.elapsed_s is None else f" {result.elapsed_s:.2f} s"
            problems = f" ({'; '.join(result.problems)})" if result.problems else ""
            self._console.print(
                f"  {plan.run_id}: {result.status}{took}{problems}", highlight=False, soft_wrap=True
            )
