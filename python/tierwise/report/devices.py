"""Device profiles with the figures of their models, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.device_models.measured_drives import ImportedDrive
from tierwise.device_models.summary import DeviceSummary
from tierwise.report.document import Block, Cell, Text, Tone, figure, table
from tierwise.report.numbers import grouped, significant

_GB = 1e9
_FIGURES = {
    "GB": "",
    "MB/s": "read\nwrite",
    "4 KiB/s": "read QD1\nQD32",
    "4 KiB/s ": "write QD1\nQD32",
    "8 KiB": "and flush\nms",
    "$": "GB-month",
}


def devices_document(summaries: Sequence[DeviceSummary]) -> list[Block]:
    """A row for each device, then an explanation of its rates."""
    found = table([], [f"{name}\n{unit}" for name, unit in _FIGURES.items()], names=["device"])
    for summary in summaries:
        found.add(*_cells(summary))
    notes = ["Rates after long use: SSDs overwritten at random, volumes out of credit."]
    if any(summary.figures.cached_writes for summary in summaries):
        notes.append("* into a cache that still had room; more writes are slower.")
    return [found, *(Text(note, Tone.QUIET) for note in notes)]


def imported_document(drive: ImportedDrive, written: str | None) -> list[Block]:
    """The profile made from a measured drive; ``written`` is its file, if any."""
    found = table(["summary"], ["GB"], names=["kind"])
    found.add(drive.kind, drive.summary, figure(drive.capacity_bytes / _GB, grouped))
    return [found, *([Text(f"wrote {written}")] if written else [])]


def _cells(summary: DeviceSummary) -> list[Cell]:
    figures = summary.figures
    mark = "*" if figures.cached_writes else ""
    estimated = summary.sources.sourced_share < 1
    share = Text(f"{1 - summary.sources.sourced_share:.0%} estimated", Tone.QUIET)
    return [
        Cell(summary.name, below=(share,) if estimated else ()),
        figure(summary.capacity_bytes / _GB, grouped),
        _pair(figures.sequential_read_mb_per_s, figures.sequential_write_mb_per_s, mark),
        _pair(figures.random_read_iops, figures.random_read_qd32_iops),
        _pair(figures.random_write_iops, figures.random_write_qd32_iops, mark),
        figure(figures.write_flush_us / 1e3, lambda ms: grouped(ms, 3)),
        figure(summary.cost_per_gb_month, significant),
    ]


def _pair(above: float, below: float, mark: str = "") -> Cell:
    return Cell(grouped(above), below=(Text(grouped(below) + mark),), value=above)
