"""Common style of charts: width, type, axes. It knows nothing of their content."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from tierwise.report.palette import Colour, css_variable, light_value

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Look:
    """One rendering of a chart: for a page or standalone, on a wide or a narrow screen.

    Args:
        width_px: width of the whole drawing.
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
NARROW = Look(350, light_value, titled=True)


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


def finish(
    layers: Sequence[alt.Chart], look: Look, height_px: int, title: str, right_px: int = 8
) -> alt.LayerChart:
    """Put layers on one canvas of the look's width, in its style.

    Args:
        layers: drawn in this order.
        look: look of the result.
        height_px: height of the plot and its axes, without a title.
        title: shown if the look has titles.
        right_px: kept free on the right.
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
    """A quantitative axis: light grid, no line, the title at its start."""
    return alt.Axis(title=title, domain=False, ticks=False, **more)  # type: ignore[arg-type]


def row_axis(look: Look, two_lines: bool = False) -> alt.Axis:
    """An axis of names: no grid, no line; in ``two_lines``, names break at their comma."""
    return alt.Axis(
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


def line_at_one(x: alt.X, look: Look) -> alt.Chart:
    """Line at ratio 1, where both sides are equal."""
    rule = plot([{"value": 1}]).mark_rule(strokeWidth=1.5, strokeDash=[2, 3], color=look.colour("muted"))
    line: alt.Chart = rule.encode(x=x)
    return line


def interval_bars(base: alt.Chart, x: alt.X, width_px: int, **mark: object) -> alt.Chart:
    """A broad pale line from ``low`` to ``high`` of every record that has a ``low``."""
    known = base.transform_filter("datum.low != null")
    bars: alt.Chart = known.mark_rule(
        strokeWidth=width_px,
        strokeCap="butt",
        opacity=0.4,
        **mark,  # type: ignore[arg-type]
    ).encode(x=alt.X("low:Q", scale=x["scale"], axis=x["axis"]), x2="high:Q")
    return bars


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
