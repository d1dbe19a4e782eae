"""The check of a workload, as a document."""

from __future__ import annotations

from tierwise.report.document import Block, Cell, Text, Tone, table
from tierwise.results.records import WorkloadCheck


def check_document(found: WorkloadCheck) -> list[Block]:
    """The file, then a row for each check."""
    rows = table(["state", "detail"], [], names=["check"])
    for tried in found.checks:
        state = Cell("FAILED", Tone.WORSE) if tried.problem else Cell("ok", Tone.BETTER)
        rows.add(tried.name, state, tried.problem or tried.note)
    return [Text(f"{found.file}: {found.summary}"), rows]
