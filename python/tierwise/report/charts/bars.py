"""Bars on rows: side by side for each group, or stacked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from tierwise.model.extras import alt
from tierwise.report.charts.figure import Mark, plotted
from tierwise.report.charts.look import Look, finish, group_colour, plot, rows
from tierwise.report.palette import text_on

_PX_OF_CHARACTER = 6.5


@dataclass(frozen=True)
class Bar(Mark):
    """One bar of a group on a row, from ``start`` to ``value``; ``hollow`` if the true value is greater."""

    start: float = 0.0
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True)
class Slice(Mark):
    """A part of a stacked bar, from ``value`` to ``end``; ``label`` is written inside."""

    end: float
    label: str = ""


def bar_chart(
    bars: Sequence[Bar], x: alt.X, palette: Mapping[str, str], look: Look, title: str
) -> alt.LayerChart:
    """Bars side by side with their figures at the end, a thin line for each interval."""
    labels = list(dict.fromkeys(one.row for one in bars))
    base = plotted(bars).encode(
        y=rows(labels, look, 0.28, two_lines=look.narrow),
        yOffset=alt.YOffset(
            "group:N", sort=list(palette), scale=alt.Scale(domain=list(palette), paddingInner=0.12)
        ),
        x=x,
        color=group_colour(palette, look, len(palette) > 1),
    )
    hollow = base.transform_filter("datum.hollow").encode(
        x2="start:Q", stroke=alt.Stroke("group:N", scale=base.encoding.color["scale"], legend=None)
    )
    ends = alt.X("low:Q", scale=x["scale"], axis=x["axis"])
    ink, muted = (alt.ColorValue(look.colour(name)) for name in ("ink", "muted"))
    layers = [
        base.transform_filter("!datum.hollow").mark_bar(opacity=0.9).encode(x2="start:Q"),
        hollow.mark_bar(fillOpacity=0.15, strokeDash=[4, 3], strokeWidth=1.5),
        base.transform_filter("datum.high != null")
        .mark_rule(strokeWidth=1.5)
        .encode(x=ends, x2="high:Q", color=ink),
        base.mark_text(align="left", dx=6, fontSize=11).encode(text="text:N", color=muted),
    ]
    height = (52 if len(palette) == 1 else 84) + len(labels) * (14 + 16 * len(palette))
    room = 12 + _PX_OF_CHARACTER * max(len(one.text) for one in bars)
    return finish(layers, look, height, title, right_px=round(room))


def stacked_chart(
    slices: Sequence[Slice], x: alt.X, palette: Mapping[str, str], look: Look, title: str
) -> alt.LayerChart:
    """One bar for each row, of slices one after the other."""
    labels = list(dict.fromkeys(one.row for one in slices))
    seen = {one.group for one in slices}
    palette = {group: colour for group, colour in palette.items() if group in seen}
    data = [asdict(one) | {"ink": text_on(palette[one.group], look.colour)} for one in slices]
    base = plot(data).encode(y=rows(labels, look, 0.3, two_lines=look.narrow))
    bars = base.mark_bar(stroke=look.colour("ground"), strokeWidth=1).encode(
        x=x, x2="end:Q", color=group_colour(palette, look)
    )
    labelled = base.transform_filter("datum.label != ''").transform_calculate(
        middle="(datum.value + datum.end) / 2"
    )
    text = labelled.mark_text(fontSize=12, fontWeight="bold").encode(
        x="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None)
    )
    legend_rows = -(-len(palette) // (2 if look.narrow else 4))
    return finish([bars, text], look, 52 + 42 * len(labels) + 22 * legend_rows, title, right_px=20)


def one_after_the_other(
    row: str, parts: Iterable[tuple[str, float, str]], least_labelled: float = math.inf
) -> list[Slice]:
    """The slices of one row, from (group, size, text); one of ``least_labelled`` or more carries its size."""
    slices: list[Slice] = []
    start = 0.0
    for group, size, text in parts:
        label = f"{size:.0f}" if size >= least_labelled else ""
        slices.append(Slice(row, group, text, start, start + size, label))
        start += size
    return slices
