"""The tables of a profile, free of how they are shown."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.breakdown import Breakdown
from tierwise.report import numbers
from tierwise.report.profile_words import CLASS_NAMES, PART_NAMES, role_name
from tierwise.savings import EVERYTHING, Saving, Savings

_FILES = 12
_LEAST_SHARE = 0.0005
"""Shares that would be printed as 0.0 % are left out."""


@dataclass(frozen=True)
class ProfileTable:
    """A table whose first ``words`` columns are text, all others figures."""

    title: str
    headings: list[str]
    rows: list[list[str]]
    words: int = 1


def profile_tables(found: Breakdown, saved: Savings) -> list[ProfileTable]:
    """All tables that have rows, in order."""
    tables = [_classes(found), _savings(saved), _roles(found), _files(found)]
    return [table for table in tables if table.rows]


def _classes(found: Breakdown) -> ProfileTable:
    rows = []
    for part, name in PART_NAMES.items():
        shares = [one.parts.get(part, 0.0) for one in found.classes]
        if any(share >= _LEAST_SHARE for share in shares):
            rows.append([name, *(numbers.percent(share) for share in shares)])
    classes = [f"{CLASS_NAMES[one.name]} ({one.threads})" for one in found.classes]
    return ProfileTable("Share of the time of threads", ["of the time of", *classes], rows)


def _savings(saved: Savings) -> ProfileTable:
    headings = ["without the device's time for", "saved at most", "times faster", "95 %"]
    return ProfileTable("What removal would save at most", headings, [_saving(row) for row in saved.rows])


def _saving(row: Saving) -> list[str]:
    name = "all roles" if row.role == EVERYTHING else str(row.role)
    if row.speedup is None:
        return [name, row.refused or numbers.NONE, "", ""]
    ends = numbers.span(numbers.ratio(row.speedup.low), numbers.ratio(row.speedup.high))
    return [name, numbers.percent(row.share), numbers.ratio(row.speedup.value), ends]


def _roles(found: Breakdown) -> ProfileTable:
    headings = [
        "role",
        "on",
        "files",
        "reads",
        "writes",
        "flushes",
        "syncs",
        "read",
        "written",
        "busy",
        "waited",
    ]
    rows = [
        [
            role_name(row.role),
            ", ".join(row.devices) or numbers.NONE,
            numbers.size(row.size_bytes),
            *(numbers.count(one) for one in (row.reads, row.writes, row.flushes, row.syncs)),
            numbers.size(row.read_bytes),
            numbers.size(row.written_bytes),
            numbers.percent(row.busy_s / found.span_s if found.span_s else 0.0),
            numbers.seconds(row.waited_s),
        ]
        for row in found.roles
    ]
    return ProfileTable("What each role asked of its device", headings, rows, words=2)


def _files(found: Breakdown) -> ProfileTable:
    files = [row for row in found.files if row.role is not None][:_FILES]
    below = common_directory([row.path for row in files])
    rows = [
        [
            row.path.removeprefix(below),
            role_name(row.role),
            *(numbers.count(one) for one in (row.reads, row.writes, row.flushes)),
            numbers.seconds(row.waited_s),
        ]
        for row in files
    ]
    headings = [f"file below {below}", "role", "reads", "writes", "flushes", "waited"]
    return ProfileTable("Files that were waited for most", headings, rows, words=2)


def common_directory(paths: Sequence[str]) -> str:
    """The longest directory that all files lie below, with its slash."""
    directory = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    return f"{directory.rstrip('/')}/"
