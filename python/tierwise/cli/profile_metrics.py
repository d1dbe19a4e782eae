"""``tierwise profile --format openmetrics``: metrics for node_exporter's textfile collector."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from tierwise.cli.printing import echo
from tierwise.predict.savings import Savings
from tierwise.recording import Day, Observation, Recording
from tierwise.recording.breakdown import Breakdown
from tierwise.report.recording.openmetrics import openmetrics


class ProfileFormat(StrEnum):
    """Output format of a profile."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    OPENMETRICS = "openmetrics"


def latest_of(recording: Path) -> Path:
    """The recording, or the latest of a day: a gauge has one value."""
    if not Day.is_at(recording):
        return recording
    latest = Day.open(recording).recordings[-1].path
    echo(f"metrics of the day's latest recording: {latest}", err=True)
    return latest


def metrics_of(
    path: Path, opened: Recording | Observation, found: Breakdown, saved: Savings, rate_per_s: float | None
) -> str:
    """The metrics of a profile, labelled with the engine and the folder's name.

    Args:
        path: of the recording.
        opened: the recording.
        found: where its time went.
        saved: savings by role.
        rate_per_s: transactions a second by the replay; if it is not known, those counted without tracing.
    """
    about = opened.about
    transactions, counted_s = (
        (opened.transactions, opened.counted_s)
        if isinstance(opened, Observation)
        else (about.transactions, about.duration_s)
    )
    if rate_per_s is None and transactions is not None and counted_s > 0:
        rate_per_s = transactions / counted_s
    labels = {"engine": about.engine, "recording": path.resolve().name}
    return openmetrics(found, saved, labels, rate_per_s, about.started_at)
