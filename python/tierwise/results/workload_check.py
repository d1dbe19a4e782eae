"""Result of the check of a workload."""

from __future__ import annotations

from tierwise.results.measurements import Record


class Tried(Record):
    """One check and its result."""

    name: str
    """Name of the check: `resolve`, `load`, a transaction or a lap."""
    problem: str | None = None
    """Why it failed; null if it passed."""
    note: str = ""
    """What was done."""


class WorkloadCheck(Record):
    """The check of a workload."""

    file: str
    """The workload's file."""
    summary: str
    """One line about the workload."""
    engine: str
    """Engine that ran it."""
    checks: list[Tried]
    """The checks, in order; a failed one may end the list."""

    @property
    def failed(self) -> int:
        """Number of failed checks."""
        return sum(tried.problem is not None for tried in self.checks)
