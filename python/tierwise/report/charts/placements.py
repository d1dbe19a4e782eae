"""Rate against cost of many placements, for a page that fills the data in and lets a reader choose one."""

from __future__ import annotations

import altair as alt

from tierwise.report.charts.look import PAGE_WIDE, Look, axis, finish

_HEIGHT_PX = 340
_PLAIN = "replace(format(datum.value, ',~r'), regexp(',', 'g'), '\u202f')"
"""A figure without an exponent, with thin spaces between thousands."""
POINTS, FRONT, CHOSEN, ADVISED = "points", "front", "chosen", "advised"
"""Data sets that the page fills: records of ``cost``, ``y`` and ``n``, the placement's number."""


def placements_chart(rate_title: str, cost_title: str, look: Look = PAGE_WIDE) -> alt.LayerChart:
    """Points for placements, a line for those that nothing cheaper equals, and marks for two of them.

    Args:
        rate_title: title of the vertical axis.
        cost_title: title of the horizontal axis.
        look: look of the drawing.
    """
    cost = alt.X(
        "cost:Q",
        scale=alt.Scale(type="symlog", constant=1, nice=False),
        axis=axis(cost_title, labelExpr=_PLAIN),
    )
    rate = alt.Y("y:Q", scale=alt.Scale(type="log", nice=False), axis=axis(rate_title, labelExpr=_PLAIN))
    points = _of(POINTS).mark_circle(
        clip=True, aria=False, size=56, opacity=0.35, color=look.colour("baseline"), cursor="pointer"
    )
    front = _of(FRONT).mark_line(
        clip=True, aria=False, interpolate="step-after", strokeWidth=2, color=look.colour("place-1")
    )
    on_front = _of(FRONT).mark_circle(
        clip=True, aria=False, size=90, opacity=1, color=look.colour("place-1"), cursor="pointer"
    )
    interval = _of(CHOSEN).mark_rule(
        clip=True, aria=False, strokeWidth=3, opacity=0.45, color=look.colour("place-2")
    )
    chosen = _of(CHOSEN).mark_point(
        clip=True,
        aria=False,
        size=190,
        strokeWidth=3,
        filled=False,
        color=look.colour("place-2"),
        cursor="pointer",
    )
    advised = _of(ADVISED).mark_point(
        clip=True,
        aria=False,
        shape="diamond",
        size=110,
        filled=True,
        opacity=1,
        color=look.colour("place-3"),
        cursor="pointer",
    )
    layers = [
        points.encode(x=cost, y=rate, tooltip="n:Q"),
        front.encode(x=cost, y=rate, order="cost:Q"),
        on_front.encode(x=cost, y=rate, tooltip="n:Q"),
        interval.encode(x=cost, y=alt.Y("low:Q"), y2="high:Q"),
        advised.encode(x=cost, y=rate, tooltip="n:Q"),
        chosen.encode(x=cost, y=rate, tooltip="n:Q"),
    ]
    return finish(layers, look, _HEIGHT_PX, "", right_px=14)


def _of(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))
