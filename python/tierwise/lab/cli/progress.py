"""Progress bars of the lab's commands, and of studies."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tierwise.cli.printing import print_error
from tierwise.lab.studies.study import RunPlan
from tierwise.model import numbers
from tierwise.results import LapResult, RunResult


class ConsoleProgress:
    """A bar of finished work; lines above it, or alone where the console is no terminal."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        """Draw on ``console``, with columns after the time that has passed."""
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *columns,
            console=console,
            speed_estimate_period=3600,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and leave the terminal as it was; say how to go on if it was interrupted."""
        self._bar.stop()
        if kind is KeyboardInterrupt:
            print_error("tierwise: interrupted: the same command without --fresh goes on with the next run")

    def left_out(self, what: str, reason: str) -> None:
        """Print what is left out, and why."""
        self._print(f"  {what}: skipped ({reason})")

    def _print(self, line: str) -> None:
        """Print a line as it is, however long."""
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)


class StudyProgress(ConsoleProgress):
    """Draws finished runs of a study and the time left, as an observer of the runner."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; if it is not a terminal, print one line per run."""
        super().__init__(
            console, TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False, compact=True)
        )
        self._run_id = ""

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None:
        """Print the directory of the results and the seed of the order."""
        runs = numbers.counted_noun(total, "run")
        kept = f", {finished} of {runs} kept from before" if finished else ""
        self._print(f"{directory.parent.name}: {runs}, seed {seed}{kept}; results in {directory}")
        self._bar.update(self._task, total=total, completed=finished)

    def run_started(self, plan: RunPlan) -> None:
        """Show the current run."""
        self._run_id = plan.run_id

    def phase_started(self, what: str) -> None:
        """Show the phase of the run."""
        self._bar.update(self._task, description=f"{self._run_id}: {what}")

    def run_finished(self, plan: RunPlan, result: RunResult) -> None:
        """Advance; print a line if no bar can be drawn or the run failed."""
        self._bar.advance(self._task)
        if result.status != "ok" or not self._console.is_terminal:
            problems = f" ({'; '.join(result.problems)})" if result.problems else ""
            self._print(f"  {plan.run_id}: {result.status}{_took(result)}{_residency(result)}{problems}")
            for lap in result.laps:
                self._print(f"    {_lap_line(lap)}")


def _took(result: RunResult) -> str:
    if result.elapsed_s is not None:
        return f" {result.elapsed_s:.2f} s"
    return "" if result.elapsed_at_least_s is None else f" at least {result.elapsed_at_least_s:.2f} s"


def _residency(result: RunResult) -> str:
    """Shares of the roles in the page cache when measuring began."""
    shares = [f"{role} {numbers.percent_text(share)}" for role, share in result.residency.items()]
    return f", cached {', '.join(shares)}" if shares else ""


def _lap_line(lap: LapResult) -> str:
    capped = " (capped)" if lap.status == "capped" else ""
    checksum = "" if lap.checksum is None else f", checksum {lap.checksum}"
    cold = (
        f", cold, {numbers.percent_text(lap.resident_share)} cached"
        if lap.cold and lap.resident_share is not None
        else ""
    )
    wrong = f", {lap.status}: {lap.problem}" if lap.status in ("failed", "wrong") else ""
    return f"{lap.name}: {lap.elapsed_s:.3f} s{capped}{checksum}{cold}{wrong}"
