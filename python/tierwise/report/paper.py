"""A paper's figures beside ours: value by value, and the ratio to the baseline that each side found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierwise.report.summary import Summary
from tierwise.results import PaperValue, Record, StudyInfo
from tierwise.statistics import Interval

MEASURES: dict[str, Callable[[Summary], Interval | None]] = {
    "elapsed": lambda row: row.elapsed,
    "rate": lambda row: row.rate,
    "log wait share": lambda row: row.log_wait_share,
    "client wait share": lambda row: row.client_wait_share,
    "elapsed without log wait": lambda row: row.projection_s,
    "cpu": lambda row: row.cpu_s,
    "log bytes": lambda row: row.log_bytes,
}
"""What a study may name in ``paper.what`` and a report can set beside our own figure."""

_UNITS = {"s": 1.0, "ms": 1e3, "%": 100.0, "1/s": 1.0, "B": 1.0, "KB": 1e-3, "MB": 1e-6, "GB": 1e-9}
"""Unit of a paper's figure -> how many of it make one of ours."""


class PaperRow(Record):
    """One figure of the paper and ours. Both ratios are the baseline's value over this placement's."""

    placement: str
    what: str
    unit: str
    source: str
    paper_value: float
    our_value: float | None
    """In the paper's unit; ``None`` where nothing of ours compares."""
    paper_ratio: float | None
    our_ratio: float | None

    @property
    def agreement(self) -> float | None:
        """Our ratio over the paper's: 1 is full agreement."""
        if self.our_ratio is None or not self.paper_ratio:
            return None
        return self.our_ratio / self.paper_ratio


def paper_rows(rows: Sequence[Summary], info: StudyInfo) -> list[PaperRow]:
    """Set every figure of the paper beside ours, in the paper's order by measure."""
    by_name = {row.placement: row for row in rows}
    order = list(dict.fromkeys(figure.what for figure in info.paper))
    figures = sorted(info.paper, key=lambda figure: order.index(figure.what))
    return [_paper_row(figure, by_name, info) for figure in figures]


def _paper_row(figure: PaperValue, rows: dict[str, Summary], info: StudyInfo) -> PaperRow:
    ours, base = _ours(figure, figure.placement, rows), _ours(figure, info.baseline, rows)
    theirs = next((o for o in info.paper if o.placement == info.baseline and o.what == figure.what), None)
    other = figure.placement != info.baseline
    return PaperRow(
        placement=figure.placement,
        what=figure.what,
        unit=figure.unit,
        source=figure.source,
        paper_value=figure.value,
        our_value=ours,
        paper_ratio=theirs.value / figure.value if other and theirs and figure.value else None,
        our_ratio=base / ours if other and base and ours else None,
    )


def _ours(figure: PaperValue, placement: str, rows: dict[str, Summary]) -> float | None:
    measure, unit, row = MEASURES.get(figure.what), _UNITS.get(figure.unit), rows.get(placement)
    interval = measure(row) if measure and row else None
    return interval.estimate * unit if interval and unit else None
