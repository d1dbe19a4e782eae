"""Progress of a validation: a line for each slot, and the time left."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tierwise.model.units import significant
from tierwise.validation import Case, Row


class RoundProgress:
    """Draws finished cases of a round, as an observer of ``validate.run``."""

    def __init__(self, console: Console) -> None:
        """Draw on ``console``; if it is not a terminal, print one line for each slot."""
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._name = ""
        self._started = 0
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

    def round_started(self, folder: Path, cases: int, estimated_s: float) -> None:
        """Print the estimated time."""
        line = f"{cases} cases to run, about {estimated_s / 60:.0f} min; slots in {folder}"
        self._console.print(line, highlight=False, soft_wrap=True)
        self._bar.update(self._task, total=cases, completed=0)

    def case_started(self, case: Case) -> None:
        """Show the current case."""
        self._name = case.name
        self._bar.update(self._task, completed=self._started)
        self._started += 1

    def phase_started(self, what: str) -> None:
        """Show its phase."""
        self._bar.update(self._task, description=f"{self._name}: {what}")

    def left_out(self, what: str, reason: str) -> None:
        """Print which case could not be brought up, and why."""
        self._console.print(f"  {what}: skipped ({reason})", highlight=False, soft_wrap=True)

    def slot_finished(self, row: Row) -> None:
        """Print a line if no bar can be drawn or the slot does not count."""
        for warning in row.cold_start.warnings if row.cold_start else []:
            line = f"  {row.run_id}: not cold: {warning}"
            self._console.print(line, highlight=False, soft_wrap=True, markup=False)
        if row.status == "ok" and self._console.is_terminal:
            return
        problems = f" ({'; '.join(row.problems)})" if row.problems else ""
        rate = row.rate_per_s
        figure = "" if rate is None else f" {significant(rate, 4)} {'jobs' if row.laps else 'transactions'}/s"
        line = f"  {row.run_id}: {row.status}{figure}{problems}"
        self._console.print(line, highlight=False, soft_wrap=True)
