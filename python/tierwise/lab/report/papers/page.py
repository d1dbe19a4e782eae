"""Findings of papers, and predictions for their machines, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.lab.analysis.findings import JudgedFinding, Outcome, PredictedPaper
from tierwise.report import numbers

CRITERIA = """A check passes when the 95 % bootstrap interval of its ratio of medians excludes 1 in the right
direction; *alike* when the interval lies within the stated bound; *most* when the interval of the recovered
share of the gain lies above one half. Each placement needs three valid repeats or more. Size is not tested,
only direction."""


def to_markdown(verdicts: Sequence[JudgedFinding], predicted: Sequence[PredictedPaper] = ()) -> str:
    """The table of findings: the paper, ours, what was predicted, whether they agree, and why not."""
    lines = [
        CRITERIA,
        "",
        "| finding | paper | ours | predicted for the paper's machine | agree? | why not |",
        "|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        finding = verdict.finding
        ours = "; ".join(f"{one.check.what}: {one.figure} {one.outcome}" for one in verdict.judged)
        why = "" if verdict.outcome is Outcome.PASS else finding.why_not or "not known yet"
        cells = (finding.name, finding.paper, ours, cell_of(finding.name, predicted), _AGREE[verdict.outcome])
        lines.append(f"| {' | '.join(cells)} | {why} |")
    passed = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
    return "\n".join([*lines, "", f"{passed} of {len(verdicts)} findings agree.", ""])


_AGREE = {Outcome.PASS: "yes", Outcome.FAIL: "**no**", Outcome.OPEN: "not decided"}


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
