"""Profiles of recordings, as a document and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierwise.predict.savings import Savings
from tierwise.recording import Device
from tierwise.recording.breakdown import Breakdown
from tierwise.recording.recording import in_words
from tierwise.report import numbers
from tierwise.report.charts.profile import described_profile, profile_chart
from tierwise.report.document import Block, Chart, Page, Section, Text, Tone, texts
from tierwise.report.recording.prediction import warning_texts
from tierwise.report.recording.profile_tables import profile_tables
from tierwise.report.recording.profile_words import finding


def profile_document(
    breakdown: Breakdown, saved: Savings, warnings: Sequence[str], devices: Sequence[Device] = ()
) -> list[Block]:
    """The whole profile, in print order."""
    return [
        Text(finding(breakdown, saved), Tone.HEADLINE),
        Text(recorded_text(breakdown)),
        *profile_tables(breakdown, saved),
        *warning_texts(_all_warnings(saved, warnings)),
        *(Text(line) for line in device_lines(devices)),
    ]


def profile_page(
    name: str, breakdown: Breakdown, saved: Savings, warnings: Sequence[str], extent: str | None = None
) -> Page:
    """The profile with its chart, as a page for one file; ``extent`` is that of an observation."""
    chart = Chart(
        "time",
        described_profile(breakdown),
        lambda look: profile_chart(breakdown, look),
        "Totals of waits: they overlap between threads, so that removing a part saves less than its share.",
    )
    return Page(
        title=f"profile of {name}",
        header=[
            Text("Where the time went", Tone.HEADLINE),
            Text(finding(breakdown, saved), Tone.HEADLINE),
            Text(f"{name}: {extent or recorded_text(breakdown)}"),
            *texts(_all_warnings(saved, warnings), Tone.WARNING),
        ],
        body=[
            Section(
                "",
                [Section("Time of each class of threads", [chart]), *profile_tables(breakdown, saved)],
                id="profile",
            )
        ],
        footer=f"Parts sum to the time of each thread within {breakdown.sum_error:.3%}. Savings are replayed "
        "with the role on a device that takes no time, so that the next wait counts.",
    )


def recorded_text(breakdown: Breakdown) -> str:
    """The extent of the recording."""
    bursts = f"{breakdown.bursts} burst{'s' if breakdown.bursts != 1 else ''}"
    return (
        f"{numbers.seconds(breakdown.span_s)} in {bursts}; recorded threads used "
        f"{numbers.percent(breakdown.busy_share)} of {breakdown.cores} cores; "
        f"the parts sum to the time of each thread within {breakdown.sum_error:.3%}."
    )


def device_lines(devices: Sequence[Device]) -> Iterator[str]:
    """The devices below the roles, down to the disks, one line per file system; none for older recordings."""
    used = [device for device in devices if device.roles and device.chain]
    for device in used:
        others = [other for other in used if other.shared == device.shared and other is not device]
        roles = [str(role) for other in others for role in other.roles]
        shared = f"; physically shared with {', '.join(dict.fromkeys(roles))}" if roles else ""
        yield f"Device of {', '.join(device.roles)}: {in_words(device.chain)}{shared}."


def _all_warnings(saved: Savings, warnings: Sequence[str]) -> list[str]:
    refused = [f"what removal would save cannot be said: {saved.refused}"] if saved.refused else []
    return list(dict.fromkeys([*warnings, *refused, *saved.warnings]))
