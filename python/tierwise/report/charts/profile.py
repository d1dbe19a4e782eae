"""Time breakdown of a recording: one bar per class of threads, and the roles of its files below."""

from __future__ import annotations

from collections.abc import Iterator

from tierwise.model.extras import alt
from tierwise.recording.breakdown import Breakdown, ClassTime, Part
from tierwise.report import numbers
from tierwise.report.charts.bars import Slice, stacked_chart
from tierwise.report.charts.figure import in_words
from tierwise.report.charts.look import WIDE, Look, percent_x
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.recording.profile_words import CLASS_NAMES, PART_NAMES

_PART_COLOURS: dict[Part, str] = {
    "cpu": "wait-cpu",
    "runnable": "muted",
    "log_device": "wait-log_sync",
    "log_queue": "wait-log_lock",
    "read": "wait-data_read",
    "write": "wait-data_write",
    "lock": "wait-lock",
    "client": "wait-client",
    "sleep": "wait-other",
    "other": "line",
}
_BY_ROLE = ", by role"
_PX_OF_ROLE = 62
_PX_OF_SHARE = 26
"""Width in pixels of a label."""


def profile_chart(found: Breakdown, look: Look = WIDE) -> alt.LayerChart:
    """Shares of each class's time, like a flame graph of two levels: parts, and roles below them."""
    plot_px = look.width_px - (120 if look.narrow else 140)
    slices = [one for each in found.classes for one in _slices(each, plot_px)]
    parts = {PART_NAMES[part]: colour for part, colour in _PART_COLOURS.items()}
    x = percent_x("Share of time (%)")
    return stacked_chart(slices, x, parts | ROLE_COLOURS, look, "Where the time went")


def _slices(one: ClassTime, plot_px: float) -> Iterator[Slice]:
    """Parts in their order, and each role's share below its part; labels where there is room."""
    name = CLASS_NAMES[one.name]
    start = 0.0
    for part in PART_NAMES:
        own = [each for each in one.slices if each.part == part and each.share > 0]
        share = sum(each.share for each in own)
        if share:
            label = f"{100 * share:.0f}" if share * plot_px >= _PX_OF_SHARE else ""
            yield _slice(name, PART_NAMES[part], start, share, label)
        for each in own:
            if each.role is not None:
                label = each.role.value if each.share * plot_px >= _PX_OF_ROLE else ""
                yield _slice(f"{name}{_BY_ROLE}", each.role.value, start, each.share, label)
            start += each.share


def _slice(row: str, group: str, start: float, share: float, label: str) -> Slice:
    return Slice(row, group, numbers.percent(share), 100 * start, 100 * (start + share), label)


def described_profile(found: Breakdown) -> str:
    """The shares of parts in words."""
    slices = [one for each in found.classes for one in _slices(each, 0)]
    return in_words("Share of time", [one for one in slices if not one.row.endswith(_BY_ROLE)])
