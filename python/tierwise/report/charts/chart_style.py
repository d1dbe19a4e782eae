"""A chart with its name and its content in words, the common style, and charts as SVG and PNG."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from tierwise.model.extras import alt, vl_convert
from tierwise.model.names import group_by_key, printable
from tierwise.model.statistics import Interval
from tierwise.report.document import Chart
from tierwise.report.palette import Colour, css_variable, standalone_colour

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
class ChartLook:
    """One rendering of a chart: for a page or standalone, on a wide or a narrow screen."""

    width_px: int
    colour: Colour
    """Converts a colour's name into the value that is written."""
    titled: bool = False
    """Whether the drawing has its own title; a page has captions instead."""

    @property
    def narrow(self) -> bool:
        """Whether to save width."""
        return self.width_px < 500


PAGE_WIDE = ChartLook(760, css_variable)
PAGE_NARROW = ChartLook(350, css_variable)
WIDE = ChartLook(760, standalone_colour, titled=True)


def chart_of_records(data: Sequence[Mapping[str, object]]) -> alt.Chart:
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


def ratio_x_axis(title: str, ratios: Sequence[Interval], look: ChartLook) -> alt.X:
    """The field ``value`` on a logarithmic scale that includes 1 and every interval."""
    ends = [end for r in ratios for end in (r.estimate, r.low, r.high) if end is not None]
    low, high = min(0.9, *(0.85 * end for end in ends)), max(1.1, *(1.1 * end for end in ends))
    close = _FEW_CLOSE_TICKS if look.narrow else _CLOSE_TICKS
    ticks = [tick for tick in (_RATIO_TICKS if high / low > 4 else close) if low <= tick <= high]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return alt.X(
        "value:Q",
        scale=scale,
        axis=quantitative_axis(f"{title} (ratio scale)", values=ticks, labelExpr=TIMES),
    )


def percent_x_axis(title: str) -> alt.X:
    """The field ``value`` from 0 to 100."""
    return alt.X("value:Q", scale=alt.Scale(domain=[0, 100]), axis=quantitative_axis(title, tickCount=5))


def zero_x_axis(title: str, look: ChartLook) -> alt.X:
    """The field ``value`` from 0 on."""
    ticks = quantitative_axis(title, tickCount=5 if look.narrow else 8)
    return alt.X("value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=ticks)


def log_x_axis(title: str, values: Sequence[float]) -> alt.X:
    """The field ``value`` on a logarithmic scale around some values."""
    scale, ticks = log_scale(values)
    return alt.X("value:Q", scale=scale, axis=quantitative_axis(title, values=ticks))


def level_y_axis(title: str, unit: str, values: Sequence[float], zero: bool = True) -> alt.Y:
    """The field ``value``: linear if the values are close together, otherwise logarithmic."""
    if max(values) > _WIDE_RANGE * min(values):
        scale, ticks = log_scale(values)
        return alt.Y(
            "value:Q", scale=scale, axis=quantitative_axis(_with_unit(title, unit, "log scale"), values=ticks)
        )
    scale = alt.Scale(domainMin=0, nice=True) if zero else alt.Scale(zero=False)
    return alt.Y("value:Q", scale=scale, axis=quantitative_axis(_with_unit(title, unit), tickCount=5))


def _with_unit(title: str, *notes: str) -> str:
    known = ", ".join(note for note in notes if note)
    return f"{title} ({known})" if known else title


def finish_chart(
    layers: Sequence[alt.Chart], look: ChartLook, height_px: int, title: str, right_px: int = 8
) -> alt.LayerChart:
    """Put layers on one canvas of the look's width, in its style.

    The height is that of the plot and its axes, without the title, which is shown if the look has titles.
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


def quantitative_axis(title: str | None = None, **more: object) -> alt.Axis:
    """A quantitative axis: plain numbers, light grid, no line."""
    return alt.Axis(title=title, domain=False, ticks=False, **({"labelExpr": PLAIN} | more))  # type: ignore[arg-type]


def row_axis(labels: Sequence[str], look: ChartLook, padding: float = 0.2, two_lines: bool = False) -> alt.Y:
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


def group_colour(groups: Mapping[str, str], look: ChartLook, shown: bool = True) -> alt.Color:
    """The field ``group`` as a colour, with a legend above the plot if it is ``shown``."""
    columns = 2 if look.narrow else 4
    return alt.Color(
        "group:N",
        scale=placement_colours(groups, look),
        legend=colour_legend(look, columns) if shown else None,
    )


def placement_colours(names: Mapping[str, str], look: ChartLook) -> alt.Scale:
    """A scale that gives each placement its colour."""
    return alt.Scale(domain=list(names), range=[look.colour(name) for name in names.values()])


def colour_legend(look: ChartLook, columns: int) -> alt.Legend:
    """A legend above the plot, wrapped to the width."""
    return alt.Legend(title=None, orient="top", columns=columns, labelLimit=150 if look.narrow else 260)


def shape_legend(look: ChartLook) -> alt.Legend:
    """A legend of shapes, above the plot, in the colour of text."""
    return alt.Legend(title=None, orient="top", symbolFillColor=look.colour("ink"))


def _styled(chart: alt.LayerChart, look: ChartLook) -> alt.LayerChart:
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
class ChartMark:
    """One figure in a chart."""

    row: str
    """Label on the axis of names."""
    group: str
    """Name in the legend."""
    text: str
    """The figure with its unit."""
    value: float
    """The figure in the unit of the axis."""


def chart_of_marks(
    name: str, title: str, marks: Sequence[ChartMark], draw: Callable[[ChartLook], alt.LayerChart]
) -> Chart | None:
    """The chart of some marks, or ``None`` if there are none."""
    return Chart(name, chart_in_words(title, marks), draw) if marks else None


def chart_in_words(title: str, marks: Iterable[ChartMark]) -> str:
    """What a chart shows, row by row, for those who cannot see it."""
    rows = group_by_key(
        (mark.row, mark.text if mark.group in ("", mark.row) else f"{mark.group} {mark.text}")
        for mark in marks
    )
    listed = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in rows.items())
    return f"{title}. {listed}."


def plot_marks(marks: Iterable[ChartMark]) -> alt.Chart:
    """A chart of marks, without encodings; fields have the names of their attributes."""
    return chart_of_records([asdict(mark) for mark in marks])


_SCALE = 2.0
_KEPT = "\n\t\u2060"


def to_svg(chart: alt.LayerChart, name: str, description: str) -> str:
    """An SVG for embedding in a page, with a description that screen readers read in its place.

    Its ids begin with ``name``, which is unique in the page.
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
