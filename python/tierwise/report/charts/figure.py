"""A chart with its name and its content in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from tierwise.model.extras import alt
from tierwise.report.charts.look import Look, plot
from tierwise.report.document import Chart

Draw = Callable[[Look], "alt.LayerChart"]


@dataclass(frozen=True)
class Mark:
    """One figure in a chart.

    Attributes:
        row: label on the axis of names.
        group: name in the legend.
        text: the figure with its unit.
        value: the figure in the unit of the axis.
    """

    row: str
    group: str
    text: str
    value: float


@dataclass(frozen=True)
class Figure:
    """One chart with data."""

    name: str
    description: str
    draw: Draw
    """Draws it in a look."""

    def block(self, caption: str = "") -> Chart:
        """The figure as a block of a document."""
        return Chart(self.name, self.description, self.draw, caption)


def figure(name: str, title: str, marks: Sequence[Mark], draw: Draw) -> Figure | None:
    """The figure of some marks, or ``None`` if there are none."""
    return Figure(name, in_words(title, marks), draw) if marks else None


def in_words(title: str, marks: Iterable[Mark]) -> str:
    """What a chart shows, row by row, for those who cannot see it."""
    rows: dict[str, list[str]] = {}
    for one in marks:
        group = "" if one.group in ("", one.row) else f"{one.group} "
        rows.setdefault(one.row, []).append(group + one.text)
    listed = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in rows.items())
    return f"{title}. {listed}."


def plotted(marks: Iterable[Mark]) -> alt.Chart:
    """A chart of marks, without encodings; fields have the names of their attributes."""
    return plot([asdict(one) for one in marks])
