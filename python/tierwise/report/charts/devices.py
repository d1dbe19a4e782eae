"""Device load by role, and the clients' latency."""

from __future__ import annotations

import altair as alt

from tierwise.report import numbers
from tierwise.report.charts.look import Look, axis, colours, finish, legend, log_scale, plot, row_axis
from tierwise.report.study.answer import Comparison
from tierwise.report.study.summary import PERCENTILES


def busy_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Share of the elapsed time in which each role kept its device busy, in percent."""
    data = [
        {
            "placement": row.placement,
            "role": io.name,
            "busy": 100 * io.busy_share,
            "text": numbers.percent(io.busy_share),
        }
        for row in comparison.rows
        for io in row.summary.busy_io
        if io.busy_share is not None and (io.reads or io.writes or io.flushes)
    ]
    if not data:
        return None
    names = [row.placement for row in comparison.rows]
    palette = comparison.colours
    roles = list(dict.fromkeys(str(datum["role"]) for datum in data))
    base = plot(data).encode(
        y=alt.Y(
            "role:N", sort=roles, axis=row_axis(look), scale=alt.Scale(paddingInner=0.3, paddingOuter=0.1)
        ),
        yOffset=alt.YOffset("placement:N", sort=names, scale=alt.Scale(domain=names, paddingInner=0.12)),
        x=alt.X(
            "busy:Q",
            scale=alt.Scale(domain=[0, 100]),
            axis=axis("Device busy (% of elapsed time)", tickCount=5),
        ),
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=alt.Color(
            "placement:N", scale=colours(palette, look), legend=legend(look, 2 if look.narrow else 5)
        )
    )
    text = base.mark_text(align="left", dx=5, fontSize=11, color=look.colour("muted")).encode(text="text:N")
    height = 80 + len(roles) * (14 + 17 * len(names))
    return finish([bars, text], look, height, "How busy each role kept its device", right_px=44)


def described_busy(comparison: Comparison) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement}: "
        + ", ".join(f"{io.name} {numbers.percent(io.busy_share)}" for io in row.summary.busy_io)
        for row in comparison.rows
        if row.summary.busy_io
    ]
    return f"Share of elapsed time in which the device was busy, by role. {'; '.join(parts)}."


def latency_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Percentiles of the latency of all transactions on a logarithmic scale, median and range of the runs."""
    spreads = [
        (row.placement, name, spread)
        for row in comparison.rows
        for name, spread in row.summary.latency.get("all", {}).items()
        if spread.least > 0
    ]
    if not spreads:
        return None
    data = [
        {
            "placement": p,
            "percentile": name,
            "ms": s.median / 1e3,
            "least": s.least / 1e3,
            "most": s.most / 1e3,
        }
        for p, name, s in spreads
    ]
    names = [row.placement for row in comparison.rows]
    palette = comparison.colours
    scale, ticks = log_scale([end / 1e3 for _, _, s in spreads for end in (s.least, s.most)])
    y_axis = axis("Latency (ms, log scale)", format="~g", values=ticks)
    y = alt.Y("ms:Q", scale=scale, axis=y_axis)
    base = plot(data).encode(
        x=alt.X(
            "percentile:N",
            sort=list(PERCENTILES),
            scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2),
            axis=alt.Axis(title=None, domain=False, ticks=False, labelAngle=0, labelColor=look.colour("ink")),
        ),
        xOffset=alt.XOffset("placement:N", sort=names, scale=alt.Scale(domain=names)),
        color=alt.Color(
            "placement:N", scale=colours(palette, look), legend=legend(look, 2 if look.narrow else 5)
        ),
    )
    ranges = base.mark_rule(strokeWidth=3, opacity=0.45).encode(
        y=alt.Y("least:Q", scale=scale, axis=y_axis), y2="most:Q"
    )
    lines = base.mark_line(strokeWidth=1.5, opacity=0.5).encode(y=y)
    dots = base.mark_point(
        filled=True, size=90, opacity=1, stroke=look.colour("ground"), strokeWidth=1.5
    ).encode(y=y)
    return finish([lines, ranges, dots], look, 330, "Latency of transactions", right_px=10)


def described_latency(comparison: Comparison) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement}: "
        + ", ".join(f"{name} {numbers.microseconds(s.median)}" for name, s in spreads.items())
        for row in comparison.rows
        if (spreads := row.summary.latency.get("all"))
    ]
    return f"Latency of transactions. {'; '.join(parts)}."
