"""Findings of power cuts in the form that ships, for advice. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.durability import Shown, ShownCuts
from tierwise.report.durability.frontier import CutRow
from tierwise.results import RunResult


def shown_of(rows: Sequence[CutRow], runs: Sequence[RunResult]) -> Shown:
    """One entry for each row, with the profiles of its placement's devices."""
    profiles = {
        (run.engine.name, run.placement): [device.profile for device in run.devices if device.profile]
        for run in runs
    }
    return Shown(
        cuts=[
            ShownCuts(
                engine=row.engine,
                profiles=profiles[row.engine, row.placement],
                lies=row.lies,
                durability=row.durability,
                durable=row.durable,
                cuts=row.cuts,
                harmed=row.harmed,
            )
            for row in rows
        ]
    )
