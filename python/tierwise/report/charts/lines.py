"""Lines over ordered values: one line for each group, with the range of every point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierwise.model.extras import alt
from tierwise.report.charts.figure import Mark, plotted
from tierwise.report.charts.look import Look, finish, group_colour


@dataclass(frozen=True)
class LinePoint(Mark):
    """A point of the line ``group`` at ``at``; ``row`` and ``text`` say the same in words."""

    at: str
    low: float | None
    high: float | None
    flagged: bool = False


def line_chart(
    points: Sequence[LinePoint],
    order: Sequence[str],
    y: alt.Y,
    palette: Mapping[str, str],
    look: Look,
    title: str,
    *,
    x_title: str | None = None,
) -> alt.LayerChart:
    """Lines side by side at each value of ``order``; flagged points carry a ▲."""
    x_axis = alt.Axis(
        title=x_title, domain=False, ticks=False, grid=False, labelAngle=0, labelColor=look.colour("ink")
    )
    base = plotted(points).encode(
        x=alt.X("at:N", sort=list(order), axis=x_axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2)),
        xOffset=alt.XOffset("group:N", sort=list(palette), scale=alt.Scale(domain=list(palette))),
        y=y,
        color=group_colour(palette, look),
    )
    ends = alt.Y("low:Q", scale=y["scale"], axis=y["axis"])
    layers = [
        base.transform_filter("datum.low != null && datum.high != null")
        .mark_rule(strokeWidth=4, opacity=0.4)
        .encode(y=ends, y2="high:Q"),
        base.mark_line(strokeWidth=1.5, opacity=0.55),
        base.mark_point(filled=True, size=85, opacity=1, stroke=look.colour("ground"), strokeWidth=1.5),
        base.transform_filter("datum.flagged")
        .mark_text(dy=-16, fontSize=13, fontWeight="bold")
        .encode(text=alt.TextValue("▲"), color=alt.ColorValue(look.colour("place-2"))),
    ]
    return finish(layers, look, 330, title, right_px=14)
