"""Predictions of the papers' experiments on the papers' machines: a table, and a cell for each finding."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.predict import Estimate
from tierwise.report import numbers
from tierwise.results import Record


class PredictedPaper(Record):
    """One experiment of a paper, predicted from a recording made here."""

    experiment: str
    finding: str = ""
    """Name of the corresponding finding, if any."""
    what: str
    """The ratio, in words."""
    paper: str
    machine: str
    """Source of the machine's factors."""
    ratio: Estimate | None
    refused: str = ""
    """Why there is no ratio."""
    reproduction_error: float | None = None
    """Replayed rate of the recorded run over the recorded one, less 1."""
    warnings: list[str]
    why: str = ""
    """Known reason for a deviation from the paper."""

    @property
    def figure(self) -> str:
        """The ratio with its interval, or why there is none."""
        if self.ratio is None:
            return f"refused: {self.refused}"
        ends = numbers.span(numbers.ratio(self.ratio.low), numbers.ratio(self.ratio.high))
        return f"{numbers.ratio(self.ratio.value)}× ({ends})"


def cell_of(finding: str, predicted: Sequence[PredictedPaper]) -> str:
    """The prediction for a finding, or a dash."""
    return "; ".join(f"{one.what}: {one.figure}" for one in predicted if one.finding == finding) or "–"


def predicted_to_markdown(predicted: Sequence[PredictedPaper]) -> str:
    """The table of all predictions, with the deviations discussed."""
    lines = [
        "| experiment | ratio | paper | predicted for the paper's machine | replayed run off by | "
        "why it deviates |",
        "|---|---|---|---|---|---|",
    ]
    for one in predicted:
        error = numbers.NONE if one.reproduction_error is None else f"{one.reproduction_error:+.1%}"
        lines.append(f"| {one.experiment} | {one.what} | {one.paper} | {one.figure} | {error} | {one.why} |")
    machines = dict.fromkeys(f"- {one.experiment}: {one.machine}" for one in predicted)
    warnings = dict.fromkeys(f"- {warning}" for one in predicted for warning in one.warnings)
    return "\n".join([*lines, "", "Machines:", "", *machines, "", "Warnings:", "", *warnings, ""])
