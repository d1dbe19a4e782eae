"""Device profiles with the figures of their models, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tierwise.device_models.profiles import ImportedDrive
from tierwise.device_models.simulation import DeviceSummary
from tierwise.report.document import Block, Cell, Text, Tone, figure, table
from tierwise.report.numbers import grouped

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
    if any(not one.price_checked for one in summaries) or any(one.sources.from_memory for one in summaries):
        notes.append(
            "Not checked: written down from memory; nobody compared it with the source that it names."
        )
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
    unsure = {"estimated": 1 - summary.sources.sourced_share, "not checked": summary.sources.unchecked_share}
    shares = [f"{share:.0%} {what}" for what, share in unsure.items() if share > 0]
    return [
        Cell(summary.name, below=tuple(Text(share, Tone.QUIET) for share in shares)),
        figure(summary.capacity_bytes / _GB, grouped),
        _pair(figures.sequential_read_mb_per_s, figures.sequential_write_mb_per_s, mark),
        _pair(figures.random_read_iops, figures.random_read_qd32_iops),
        _pair(figures.random_write_iops, figures.random_write_qd32_iops, mark),
        figure(figures.write_flush_us / 1e3, lambda ms: grouped(ms, 3)),
        _price(summary),
    ]


def _price(summary: DeviceSummary) -> Cell:
    cost = figure(summary.cost_per_gb_month, lambda cost: f"{cost:.3g}")
    if summary.cost_per_gb_month is None or summary.price_checked:
        return cost
    return replace(cost, below=(Text("not checked", Tone.QUIET),))


def _pair(above: float, below: float, mark: str = "") -> Cell:
    return Cell(grouped(above), below=(Text(grouped(below) + mark),), value=above)
