"""The tables of a profile."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from tierwise.predict.savings import EVERYTHING, Saving, Savings
from tierwise.recording.breakdown import Breakdown
from tierwise.report import numbers
from tierwise.report.document import Cell, Table, estimate, figure, table
from tierwise.report.recording.profile_words import CLASS_NAMES, PART_NAMES, role_name

_FILES = 12
_LEAST_US = 0.5
_WAITS: Mapping[str, str] = {str(part): name for part, name in PART_NAMES.items()}
_LEAST_SHARE = 0.0005
"""Shares that would be printed as 0.0 % are left out."""


def profile_tables(breakdown: Breakdown, saved: Savings) -> list[Table]:
    """All tables that have rows, in order."""
    tables = [_classes(breakdown), _demands(saved), _savings(saved), _roles(breakdown), _files(breakdown)]
    return [table for table in tables if table.rows]


def _classes(breakdown: Breakdown) -> Table:
    classes = [f"{CLASS_NAMES[class_time.name]} ({class_time.threads})" for class_time in breakdown.classes]
    shown = table(["of the time of"], classes, "Share of the time of threads")
    for part, name in PART_NAMES.items():
        shares = [class_time.parts.get(part, 0.0) for class_time in breakdown.classes]
        if any(share >= _LEAST_SHARE for share in shares):
            shown.add(name, *(figure(share, numbers.percent) for share in shares))
    return shown


def _demands(saved: Savings) -> Table:
    unit = saved.unit.removesuffix("s")
    shown = table([f"part of one {unit}"], ["time"], f"The mean {unit}, without the cost of recording")
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
            shown.add(name, figure(time_us, numbers.microseconds))
    return shown


def _savings(saved: Savings) -> Table:
    words = ["without the device's time for"]
    shown = table(words, ["saved at most", "times faster"], "What removal would save at most")
    for row in saved.rows:
        shown.add(*_saving(row))
    return shown


def _saving(row: Saving) -> list[Cell | str]:
    name = "all roles" if row.role == EVERYTHING else str(row.role)
    if row.speedup is None:
        return [name, row.refused or numbers.NONE, ""]
    return [name, figure(row.share, numbers.percent), estimate(row.speedup, numbers.ratio)]


def _roles(breakdown: Breakdown) -> Table:
    figures = ["files", "reads", "writes", "flushes", "syncs", "read", "written", "busy", "waited"]
    shown = table(["role", "on"], figures, "What each role asked of its device")
    for row in breakdown.roles:
        shown.add(
            role_name(row.role),
            ", ".join(row.devices) or numbers.NONE,
            figure(row.size_bytes, numbers.size),
            *(figure(number, numbers.count) for number in (row.reads, row.writes, row.flushes, row.syncs)),
            figure(row.read_bytes, numbers.size),
            figure(row.written_bytes, numbers.size),
            figure(row.busy_s / breakdown.span_s if breakdown.span_s else 0.0, numbers.percent),
            figure(row.waited_s, numbers.seconds),
        )
    return shown


def _files(breakdown: Breakdown) -> Table:
    files = [row for row in breakdown.files if row.role is not None][:_FILES]
    below = common_directory([row.path for row in files])
    words = [f"file below {below}", "role"]
    shown = table(words, ["reads", "writes", "flushes", "waited"], "Files that were waited for most")
    for row in files:
        shown.add(
            row.path.removeprefix(below),
            role_name(row.role),
            *(figure(number, numbers.count) for number in (row.reads, row.writes, row.flushes)),
            figure(row.waited_s, numbers.seconds),
        )
    return shown


def common_directory(paths: Sequence[str]) -> str:
    """The deepest common directory of all files, with its slash."""
    directory = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    return f"{directory.rstrip('/')}/"
