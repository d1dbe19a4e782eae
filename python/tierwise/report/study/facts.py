"""What the sentences of a comparison are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.report.study.rows import First, Measure, Row


@dataclass(frozen=True)
class Facts:
    """The subject of the sentences."""

    rows: Sequence[Row]
    choice: First
    workload: str
    baseline: str
    measure: Measure

    @property
    def first(self) -> Row | None:
        """The placement to adopt first."""
        return self.choice.row

    @property
    def base(self) -> Row | None:
        """The baseline, if it has a valid run."""
        return next((row for row in self.rows if row.is_baseline and row.summary.ok), None)

    @property
    def movers(self) -> list[Row]:
        """Every other placement."""
        return [row for row in self.rows if not row.is_baseline]
