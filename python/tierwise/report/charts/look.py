"""A chart with its name and its content in words, the common style, and charts as SVG and PNG."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from tierwise.model.extras import alt, vl_convert
from tierwise.model.names import gathered, printable
from tierwise.model.statistics import Interval
from tierwise.report.document import Chart
from tierwise.report.palette import Colour, css_variable, light_value

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
PLAIN = r"replace(format(datum.value, ',.6~r'), regexp(',', 'g'), '\u202f')"
"""Labels of an axis, as tables write numbers: no exponent, no unit prefix, thin spaces between thousands."""
TIMES = f"{PLAIN} + '×'"
"""Labels of an axis of ratios."""
_RATIO_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_FEW_CLOSE_TICKS = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4)
_CLOSE_TICKS = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.75, 2, 2.5, 3, 4)
_WIDE_RANGE = 4
"""Greatest over least value from which an axis is logarithmic."""


@dataclass(frozen=True)
class Look:
    """One rendering of a chart: for a page or standalone, on a wide or a narrow screen.

    Args:
        colour: converts a colour's name into the value that is written.
        titled: whether the drawing has its own title (a page has captions instead).
    """

    width_px: int
    colour: Colour
    titled: bool = False

    @property
    def narrow(self) -> bool:
        """Whether to save width."""
        return self.width_px < 500


PAGE_WIDE = Look(760, css_variable)
PAGE_NARROW = Look(350, css_variable)
WIDE = Look(760, light_value, titled=True)


def plot(data: Sequence[Mapping[str, object]]) -> alt.Chart:
    """A chart of records, without marks and encodings."""
    return alt.Chart(alt.InlineData(values=[dict(datum) for datum in data]))


def log_scale(values: Sequence[float]) -> tuple[alt.Scale, list[float]]:
    """A logarithmic scale around positive ``values``, and ticks at 1, 2 and 5 of each decade within it.

    Ticks of close values get finer, so that at least three remain.
    """
    low, high = 0.85 * min(values), 1.15 * max(values)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        ticks = [round(step * 10.0**decade, 9) for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return alt.Scale(type="log", domain=[low, high], nice=False), ticks


def ratio_x(title: str, ratios: Sequence[Interval], look: Look) -> alt.X:
    """The field ``value`` on a logarithmic scale that includes 1 and every interval."""
    ends = [end for r in ratios for end in (r.estimate, r.low, r.high) if end is not None]
    low, high = min(0.9, *(0.85 * end for end in ends)), max(1.1, *(1.1 * end for end in ends))
    close = _FEW_CLOSE_TICKS if look.narrow else _CLOSE_TICKS
    ticks = [tick for tick in (_RATIO_TICKS if high / low > 4 else close) if low <= tick <= high]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return alt.X("value:Q", scale=scale, axis=axis(f"{title} (ratio scale)", values=ticks, labelExpr=TIMES))


def percent_x(title: str) -> alt.X:
    """The field ``value`` from 0 to 100."""
    return alt.X("value:Q", scale=alt.Scale(domain=[0, 100]), axis=axis(title, tickCount=5))


def zero_x(title: str, look: Look) -> alt.X:
    """The field ``value`` from 0 on."""
    ticks = axis(title, tickCount=5 if look.narrow else 8)
    return alt.X("value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=ticks)


def log_x(title: str, values: Sequence[float]) -> alt.X:
    """The field ``value`` on a logarithmic scale around some values."""
    scale, ticks = log_scale(values)
    return alt.X("value:Q", scale=scale, axis=axis(title, values=ticks))


def level_y(title: str, unit: str, values: Sequence[float], zero: bool = True) -> alt.Y:
    """The field ``value``: linear if the values are close together, otherwise logarithmic."""
    if max(values) > _WIDE_RANGE * min(values):
        scale, ticks = log_scale(values)
        return alt.Y("value:Q", scale=scale, axis=axis(_with_unit(title, unit, "log scale"), values=ticks))
    scale = alt.Scale(domainMin=0, nice=True) if zero else alt.Scale(zero=False)
    return alt.Y("value:Q", scale=scale, axis=axis(_with_unit(title, unit), tickCount=5))


def _with_unit(title: str, *notes: str) -> str:
    known = ", ".join(note for note in notes if note)
    return f"{title} ({known})" if known else title


def finish(
    layers: Sequence[alt.Chart], look: Look, height_px: int, title: str, right_px: int = 8
) -> alt.LayerChart:
    """Put layers on one canvas of the look's width, in its style.

    Args:
        height_px: height of the plot and its axes, without a title.
        title: shown if the look has titles.
    """
    chart = alt.LayerChart(layer=list(layers)).properties(
        width=look.width_px,
        height=height_px,
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        padding={"left": 2, "right": right_px, "top": 4, "bottom": 2},
    )
    if look.titled:
        chart = chart.properties(title=title)
    return _styled(chart, look)


def axis(title: str | None = None, **more: object) -> alt.Axis:
    """A quantitative axis: plain numbers, light grid, no line."""
    return alt.Axis(title=title, domain=False, ticks=False, **({"labelExpr": PLAIN} | more))  # type: ignore[arg-type]


def rows(labels: Sequence[str], look: Look, padding: float = 0.2, two_lines: bool = False) -> alt.Y:
    """The field ``row`` from top to bottom, without grid and line; ``two_lines``: names break at a comma."""
    names = alt.Axis(
        labelExpr="split(datum.label, ', ')" if two_lines else "datum.label",
        title=None,
        domain=False,
        ticks=False,
        grid=False,
        labelPadding=10,
        labelLimit=112 if look.narrow else 230,
        labelColor=look.colour("ink"),
        labelFontSize=12 if look.narrow else 13,
    )
    scale = alt.Scale(paddingInner=padding, paddingOuter=0.1)
    return alt.Y("row:N", sort=list(dict.fromkeys(labels)), axis=names, scale=scale)


def group_colour(groups: Mapping[str, str], look: Look, shown: bool = True) -> alt.Color:
    """The field ``group`` as a colour, with a legend above the plot if it is ``shown``."""
    columns = 2 if look.narrow else 4
    return alt.Color("group:N", scale=colours(groups, look), legend=legend(look, columns) if shown else None)


def colours(names: Mapping[str, str], look: Look) -> alt.Scale:
    """A scale that gives each placement its colour."""
    return alt.Scale(domain=list(names), range=[look.colour(name) for name in names.values()])


def legend(look: Look, columns: int) -> alt.Legend:
    """A legend above the plot, wrapped to the width."""
    return alt.Legend(title=None, orient="top", columns=columns, labelLimit=150 if look.narrow else 260)


def shape_legend(look: Look) -> alt.Legend:
    """A legend of shapes, above the plot, in the colour of text."""
    return alt.Legend(title=None, orient="top", symbolFillColor=look.colour("ink"))


def _styled(chart: alt.LayerChart, look: Look) -> alt.LayerChart:
    ink, muted = look.colour("ink"), look.colour("muted")
    small = 11 if look.narrow else 12
    styled: alt.LayerChart = chart.configure(
        font=FONT,
        aria=False,
        background="transparent" if not look.titled else look.colour("ground"),
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=muted,
            labelFontSize=small,
            titleColor=muted,
            titleFontSize=small,
            titleFontWeight="normal",
            titlePadding=8,
            gridColor=look.colour("grid"),
            labelOverlap=True,
        ),
        legend=alt.LegendConfig(
            symbolOpacity=1,
            labelColor=ink,
            labelFontSize=small,
            symbolSize=90,
            columnPadding=18,
            rowPadding=4,
            offset=10,
        ),
        title=alt.TitleConfig(
            anchor="start", color=ink, fontSize=15, fontWeight="bold", offset=14, frame="bounds"
        ),
    )
    return styled


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


def figure(
    name: str, title: str, marks: Sequence[Mark], draw: Callable[[Look], alt.LayerChart]
) -> Chart | None:
    """The chart of some marks, or ``None`` if there are none."""
    return Chart(name, in_words(title, marks), draw) if marks else None


def in_words(title: str, marks: Iterable[Mark]) -> str:
    """What a chart shows, row by row, for those who cannot see it."""
    rows = gathered(
        (mark.row, mark.text if mark.group in ("", mark.row) else f"{mark.group} {mark.text}")
        for mark in marks
    )
    listed = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in rows.items())
    return f"{title}. {listed}."


def plotted(marks: Iterable[Mark]) -> alt.Chart:
    """A chart of marks, without encodings; fields have the names of their attributes."""
    return plot([asdict(mark) for mark in marks])


_SCALE = 2.0
_KEPT = "\n\t\u2060"


def to_svg(chart: alt.LayerChart, name: str, description: str) -> str:
    """An SVG for embedding in a page.

    Args:
        name: unique in the page; ids inside the drawing begin with it.
        description: text that screen readers read in place of the drawing.
    """
    svg = vl_convert.vegalite_to_svg(_printable(chart.to_dict()))
    # Vega hides overlapping labels instead of omitting them, and prevents text selection.
    svg = re.sub(r'<text[^>]*opacity="0"[^>]*>[^<]*</text>', "", svg)
    svg = re.sub(r' (?:class|aria-[a-z]+|role|pointer-events|xmlns:xlink)="[^"]*"', "", svg)
    # Reproducible ids, unique in a page; Vega's counter continues through the whole process.
    numbers = {old: number for number, old in enumerate(re.findall(r' id="([^"]+)"', svg))}
    svg = re.sub(r'( id="|url\(#)([^")]+)', lambda m: f"{m[1]}{name}-{numbers[m[2]]}", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)


def to_png(chart: alt.LayerChart) -> bytes:
    """A PNG at twice the drawing's size."""
    return bytes(vl_convert.vegalite_to_png(_printable(chart.to_dict()), scale=_SCALE))


def _printable(spec: Any) -> Any:
    """The specification with printable texts: a control character ends the process of the renderer."""
    match spec:
        case str():
            return printable(spec, _KEPT)
        case dict():
            return {_printable(key): _printable(value) for key, value in spec.items()}
        case list() | tuple():
            return [_printable(value) for value in spec]
        case _:
            return spec
