"""Profiles of recordings, as a document and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tierwise.model.device_chain import in_words
from tierwise.predict.savings import Savings
from tierwise.recording import Device
from tierwise.recording.breakdown import Breakdown
from tierwise.report import numbers
from tierwise.report.charts.profile import described_profile, profile_chart
from tierwise.report.document import Block, Text, Tone
from tierwise.report.page import drawing, environment
from tierwise.report.prediction import warning_texts
from tierwise.report.profile_tables import profile_tables
from tierwise.report.profile_words import finding
from tierwise.report.render.html import to_html


def profile_document(
    found: Breakdown, saved: Savings, warnings: Sequence[str], devices: Sequence[Device] = ()
) -> list[Block]:
    """Everything, in the order in which it is printed."""
    return [
        Text(finding(found, saved), Tone.HEADLINE),
        Text(recorded_text(found)),
        *profile_tables(found, saved),
        *warning_texts(_all_warnings(saved, warnings)),
        *(Text(line) for line in device_lines(devices)),
    ]


def profile_page(name: str, found: Breakdown, saved: Savings, warnings: Sequence[str]) -> str:
    """One page that opens offline."""
    return (
        environment()
        .get_template("profile.html.j2")
        .render(
            name=name,
            found=found,
            finding=finding(found, saved),
            recorded=f"{name}: {recorded_text(found)}",
            warnings=_all_warnings(saved, warnings),
            tables=[to_html([table]) for table in profile_tables(found, saved)],
            figure=drawing(
                "profile", "time", described_profile(found), lambda look: profile_chart(found, look)
            ),
        )
    )


def recorded_text(found: Breakdown) -> str:
    """How much was recorded."""
    bursts = f"{found.bursts} burst{'s' if found.bursts != 1 else ''}"
    return (
        f"{numbers.seconds(found.span_s)} in {bursts}; recorded threads used "
        f"{numbers.percent(found.busy_share)} of {found.cores} cores; "
        f"the parts sum to the time of each thread within {found.sum_error:.3%}."
    )


def device_lines(devices: Sequence[Device]) -> Iterator[str]:
    """What the roles lie on, down to the disks, a line a file system; none for older recordings."""
    used = [device for device in devices if device.roles and device.chain]
    for device in used:
        others = [other for other in used if other.shared == device.shared and other is not device]
        roles = [str(role) for other in others for role in other.roles]
        shared = f"; physically shared with {', '.join(dict.fromkeys(roles))}" if roles else ""
        yield f"Device of {', '.join(device.roles)}: {in_words(device.chain)}{shared}."


def _all_warnings(saved: Savings, warnings: Sequence[str]) -> list[str]:
    refused = [f"what removal would save cannot be said: {saved.refused}"] if saved.refused else []
    return list(dict.fromkeys([*warnings, *refused, *saved.warnings]))
