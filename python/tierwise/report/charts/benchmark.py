"""Patterns of a device benchmark: throughput in MB/s, one colour per placement."""

from __future__ import annotations

import altair as alt

from tierwise.report import numbers
from tierwise.report.charts.look import Look, axis, colours, finish, legend, log_scale, plot, row_axis
from tierwise.report.study.answer import Comparison


def patterns_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Throughput of every pattern with its interval, on a log scale."""
    if comparison.benchmark is None or not comparison.benchmark.rows:
        return None
    data = [
        {
            "pattern": row.title,
            "placement": row.placement,
            "value": row.mb_per_s.estimate,
            "low": row.mb_per_s.low,
            "high": row.mb_per_s.high,
        }
        for row in comparison.benchmark.rows
    ]
    titles = list(dict.fromkeys(row.title for row in comparison.benchmark.rows))
    rates = [row.mb_per_s for row in comparison.benchmark.rows]
    ends = [end for rate in rates for end in (rate.estimate, rate.low, rate.high) if end]
    scale, ticks = log_scale(ends)
    title = "MB/s (log scale)"
    x_axis = axis(title, values=ticks, format="~g")
    names = comparison.colours
    colour = alt.Color(
        "placement:N", scale=colours(names, look), legend=legend(look, 2 if look.narrow else 5)
    )
    base = plot(data).encode(y=alt.Y("pattern:N", sort=titles, axis=row_axis(look)), color=colour)
    bars = base.mark_rule(strokeWidth=9, strokeCap="butt", opacity=0.4).encode(
        x=alt.X("low:Q", scale=scale, axis=x_axis), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=alt.X("value:Q", scale=scale, axis=x_axis)
    )
    return finish([bars, dots], look, 76 + 34 * len(titles), title, right_px=24)


def described_patterns(comparison: Comparison) -> str:
    """The same chart in words."""
    rows = comparison.benchmark.rows if comparison.benchmark else []
    parts = [
        f"{row.title} on {row.placement} {numbers.significant(row.mb_per_s.estimate)} MB/s" for row in rows
    ]
    return f"Throughput of each pattern: {'; '.join(parts)}."
