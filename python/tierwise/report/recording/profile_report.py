"""Profiles of recordings: in words, as tables, as a chart, as a document and as a page."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.placement import EVERYTHING, ROLE_NAMES, Role
from tierwise.predict.time_savings import TimeSavings
from tierwise.recording import MountedDevice
from tierwise.recording.breakdown import Breakdown, ClassTime, Part, ThreadClass
from tierwise.recording.recording import storage_chain_in_words
from tierwise.report import document as doc
from tierwise.report.charts import chart_style as drawing
from tierwise.report.charts.chart_builders import BarSlice, stacked_chart
from tierwise.report.charts.chart_style import WIDE, ChartLook, percent_x_axis
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.recording.prediction_report import warning_texts

PART_NAMES: dict[Part, str] = {
    "cpu": "on CPU",
    "runnable": "waiting for a core",
    "log_device": "log device",
    "log_queue": "behind others' log flush",
    "read": "reading files",
    "write": "writing files",
    "lock": "locks, other threads",
    "client": "client",
    "sleep": "asleep, or no work",
    "other": "other",
}
CLASS_NAMES: dict[ThreadClass, str] = {
    "session": "sessions",
    "client": "clients",
    "log_writer": "log writer",
    "background": "background",
    "kernel": "kernel",
    "other": "other threads",
}
_LEAST_SAVING = 0.01
"""Savings below this share are treated as none."""


def role_name(role: Role | None) -> str:
    """Name of a role, or of requests without a file."""
    return role.value if role else "no file"


def main_thread_class(breakdown: Breakdown) -> ClassTime | None:
    """The sessions; without sessions, the class with the most lifetime."""
    sessions = [class_time for class_time in breakdown.classes if class_time.name == "session"]
    ordered = sorted(breakdown.classes, key=lambda class_time: class_time.lived_s, reverse=True)
    return next(iter([*sessions, *ordered]), None)


def profile_finding(breakdown: Breakdown, saved: TimeSavings) -> str:
    """The main finding as a sentence."""
    return " ".join(filter(None, [_time_sentence(breakdown), _saving_sentence(saved)]))


def _time_sentence(breakdown: Breakdown) -> str:
    chief = main_thread_class(breakdown)
    if chief is None:
        return "No thread was seen."
    ordered = sorted(chief.parts.items(), key=lambda item: item[1], reverse=True)[:3]
    parts = [f"{numbers.percent_text(share)} {PART_NAMES[part]}" for part, share in ordered if share > 0]
    return f"Time of the {CLASS_NAMES[chief.name]}: {', '.join(parts)}."


def _saving_sentence(saved: TimeSavings) -> str:
    first = next((row for row in saved.rows if row.role != EVERYTHING), None)
    if first is None or first.share is None:
        return ""
    if first.share < _LEAST_SAVING:
        return "No role's device costs anything worth naming."
    name = ROLE_NAMES[Role(first.role)]
    share = numbers.percent_text(first.share)
    return f"If {name} took no time at its device, {share} of the time would be saved at most."


_FILES = 12
_LEAST_US = 0.5
_WAITS: Mapping[str, str] = {str(part): name for part, name in PART_NAMES.items()}
_LEAST_SHARE = 0.0005
"""Shares that would be printed as 0.0 % are left out."""


def profile_tables(breakdown: Breakdown, saved: TimeSavings) -> list[doc.Table]:
    """All tables that have rows, in order."""
    tables = [_classes(breakdown), _demands(saved), _savings(saved), _roles(breakdown), _files(breakdown)]
    return [table for table in tables if table.rows]


def _classes(breakdown: Breakdown) -> doc.Table:
    classes = [f"{CLASS_NAMES[class_time.name]} ({class_time.threads})" for class_time in breakdown.classes]
    shown = doc.empty_table(["of the time of"], classes, "Share of the time of threads")
    for part, name in PART_NAMES.items():
        shares = [class_time.parts.get(part, 0.0) for class_time in breakdown.classes]
        if any(share >= _LEAST_SHARE for share in shares):
            shown.add(name, *(doc.figure_cell(share, numbers.percent_text) for share in shares))
    return shown


def _demands(saved: TimeSavings) -> doc.Table:
    unit = saved.unit.removesuffix("s")
    shown = doc.empty_table(
        [f"part of one {unit}"], ["time"], f"The mean {unit}, without the cost of recording"
    )
    if saved.demands is None:
        return shown
    asked = {
        "server computes": saved.demands.server_cpu_us,
        "server computes for its share of a flush of the log": saved.demands.flush_cpu_us,
        "client computes": saved.demands.client_cpu_us,
        "client pauses": saved.demands.think_us,
    }
    for wait in saved.demands.waits:
        of_role = f", {wait.role}" if wait.role else ""
        asked[f"waits: {_WAITS.get(wait.category, wait.category)}{of_role}"] = wait.time_us
    for name, time_us in asked.items():
        if time_us >= _LEAST_US:
            shown.add(name, doc.figure_cell(time_us, numbers.latency_text))
    return shown


def _savings(saved: TimeSavings) -> doc.Table:
    words = ["without the device's time for"]
    shown = doc.empty_table(words, ["saved at most", "times faster"], "What removal would save at most")
    for row in saved.rows:
        name = "all roles" if row.role == EVERYTHING else str(row.role)
        if row.speedup is None:
            shown.add(name, row.refused or numbers.NONE, "")
        else:
            figures = (
                doc.figure_cell(row.share, numbers.percent_text),
                doc.estimate_cell(row.speedup, numbers.ratio_text),
            )
            shown.add(name, *figures)
    return shown


def _roles(breakdown: Breakdown) -> doc.Table:
    figures = ["files", "reads", "writes", "flushes", "syncs", "read", "written", "busy", "waited"]
    shown = doc.empty_table(["role", "on"], figures, "What each role asked of its device")
    for row in breakdown.roles:
        shown.add(
            role_name(row.role),
            ", ".join(row.devices) or numbers.NONE,
            doc.figure_cell(row.size_bytes, numbers.size_text),
            *(
                doc.figure_cell(number, numbers.count_text)
                for number in (row.reads, row.writes, row.flushes, row.syncs)
            ),
            doc.figure_cell(row.read_bytes, numbers.size_text),
            doc.figure_cell(row.written_bytes, numbers.size_text),
            doc.figure_cell(row.busy_s / breakdown.span_s if breakdown.span_s else 0.0, numbers.percent_text),
            doc.figure_cell(row.waited_s, numbers.seconds_text),
        )
    return shown


def _files(breakdown: Breakdown) -> doc.Table:
    files = [row for row in breakdown.files if row.role is not None][:_FILES]
    below = common_directory([row.path for row in files])
    words = [f"file below {below}", "role"]
    shown = doc.empty_table(
        words, ["reads", "writes", "flushes", "waited"], "Files that were waited for most"
    )
    for row in files:
        shown.add(
            row.path.removeprefix(below),
            role_name(row.role),
            *(doc.figure_cell(number, numbers.count_text) for number in (row.reads, row.writes, row.flushes)),
            doc.figure_cell(row.waited_s, numbers.seconds_text),
        )
    return shown


def common_directory(paths: Sequence[str]) -> str:
    """The deepest common directory of all files, with its slash."""
    directory = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    return f"{directory.rstrip('/')}/"


def profile_document(
    breakdown: Breakdown, saved: TimeSavings, warnings: Sequence[str], devices: Sequence[MountedDevice] = ()
) -> list[doc.Block]:
    """The whole profile, in print order."""
    return [
        doc.Text(profile_finding(breakdown, saved), doc.Tone.HEADLINE),
        doc.Text(recording_extent_text(breakdown)),
        *profile_tables(breakdown, saved),
        *warning_texts(profile_warnings(saved, warnings)),
        *(doc.Text(line) for line in device_lines(devices)),
    ]


def profile_page(
    name: str,
    breakdown: Breakdown,
    saved: TimeSavings,
    warnings: Sequence[str],
    extent: str | None = None,
    unusable: Sequence[doc.Block] = (),
) -> doc.Page:
    """The profile with its chart, as a page for one file.

    Args:
        extent: that of an observation.
        unusable: that the recording is not usable, before all else.
    """
    chart = doc.Chart(
        "time",
        profile_in_words(breakdown),
        lambda look: profile_chart(breakdown, look),
        "Totals of waits: they overlap between threads, so that removing a part saves less than its share.",
    )
    return doc.Page(
        title=f"profile of {name}",
        header=[
            *unusable,
            doc.Text("Where the time went", doc.Tone.HEADLINE),
            doc.Text(profile_finding(breakdown, saved), doc.Tone.HEADLINE),
            doc.Text(f"{name}: {extent or recording_extent_text(breakdown)}"),
            *doc.paragraphs(profile_warnings(saved, warnings), doc.Tone.WARNING),
        ],
        body=[
            doc.Section(
                "",
                [doc.Section("Time of each class of threads", [chart]), *profile_tables(breakdown, saved)],
                id="profile",
            )
        ],
        footer=f"Parts sum to the time of each thread within {numbers.percent_text(breakdown.sum_error)}. "
        "Savings are replayed with the role on a device that takes no time, so that the next wait counts.",
    )


def recording_extent_text(breakdown: Breakdown) -> str:
    """The extent of the recording."""
    bursts = numbers.counted_noun(breakdown.bursts, "burst")
    return (
        f"{numbers.seconds_text(breakdown.span_s)} in {bursts}; recorded threads used "
        f"{numbers.percent_text(breakdown.busy_share)} of {numbers.counted_noun(breakdown.cores, 'core')}; "
        f"the parts sum to the time of each thread within {numbers.percent_text(breakdown.sum_error)}."
    )


def device_lines(devices: Sequence[MountedDevice]) -> Iterator[str]:
    """The devices below the roles, down to the disks, one line per file system; none for older recordings."""
    used = [device for device in devices if device.roles and device.chain]
    for device in used:
        others = [other for other in used if other.shared == device.shared and other is not device]
        roles = [str(role) for other in others for role in other.roles]
        shared = f"; physically shared with {', '.join(dict.fromkeys(roles))}" if roles else ""
        yield f"Device of {', '.join(device.roles)}: {storage_chain_in_words(device.chain)}{shared}."


def profile_warnings(saved: TimeSavings, warnings: Sequence[str]) -> list[str]:
    """Warnings of a recording or an observation and of its savings, each once."""
    refused = [f"what removal would save cannot be said: {saved.refused}"] if saved.refused else []
    return list(dict.fromkeys([*warnings, *refused, *saved.warnings]))


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


def profile_chart(breakdown: Breakdown, look: ChartLook = WIDE) -> alt.LayerChart:
    """Shares of each class's time, like a flame graph of two levels: parts, and roles below them."""
    plot_px = look.width_px - (120 if look.narrow else 140)
    slices = [bar_slice for each in breakdown.classes for bar_slice in _slices(each, plot_px)]
    parts = {PART_NAMES[part]: colour for part, colour in _PART_COLOURS.items()}
    x = percent_x_axis("Share of time (%)")
    return stacked_chart(slices, x, parts | ROLE_COLOURS, look, "Where the time went")


def _slices(class_time: ClassTime, plot_px: float) -> Iterator[BarSlice]:
    """Parts in their order, and each role's share below its part; labels where there is room."""
    name = CLASS_NAMES[class_time.name]
    start = 0.0
    for part, part_name in PART_NAMES.items():
        own = [each for each in class_time.slices if each.part == part and each.share > 0]
        share = sum(each.share for each in own)
        if share:
            label = f"{100 * share:.0f}" if share * plot_px >= _PX_OF_SHARE else ""
            yield _slice(name, part_name, start, share, label)
        for each in own:
            if each.role is not None:
                label = each.role.value if each.share * plot_px >= _PX_OF_ROLE else ""
                yield _slice(f"{name}{_BY_ROLE}", each.role.value, start, each.share, label)
            start += each.share


def _slice(row: str, group: str, start: float, share: float, label: str) -> BarSlice:
    return BarSlice(row, group, numbers.percent_text(share), 100 * start, 100 * (start + share), label)


def profile_in_words(breakdown: Breakdown) -> str:
    """The shares of parts in words."""
    slices = [bar_slice for each in breakdown.classes for bar_slice in _slices(each, 0)]
    return drawing.chart_in_words(
        "Share of time", [bar_slice for bar_slice in slices if not bar_slice.row.endswith(_BY_ROLE)]
    )
