"""Two sets of results: speed-up of B over A, by run and by lap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import altair as alt

from tierwise.model.statistics import Bound, Interval
from tierwise.report import numbers
from tierwise.report.charts.comparison import TIMES, ratio_domain
from tierwise.report.charts.look import Look, axis, finish, interval_bars, line_at_one, plot, row_axis
from tierwise.report.comparison.sets import SetComparison

_MOST_ROWS = 60


def pairs_chart(found: SetComparison) -> Callable[[Look], alt.LayerChart] | None:
    """Draws the chart in a look; ``None`` if no time has a counterpart in the other set."""
    rows = dict(list(_speeds(found))[:_MOST_ROWS])
    return (lambda look: _chart(rows, look)) if rows else None


def _speeds(found: SetComparison) -> Iterator[tuple[str, Interval]]:
    for pair in found.pairs:
        for row in pair.rows:
            if row.what == "elapsed" and row.ratio:
                yield (
                    ", ".join(part for part in (row.name or "whole run", pair.label) if part),
                    row.ratio.inverse,
                )


def _chart(rows: dict[str, Interval], look: Look) -> alt.LayerChart:
    low, high, ticks = ratio_domain(list(rows.values()), look)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x_axis = axis("How many times faster B is than A (ratio scale)", values=ticks, labelExpr=TIMES)
    data = [
        {
            "row": name,
            "value": ratio.estimate,
            "low": ratio.low if ratio.bound is Bound.EXACT else None,
            "high": ratio.high,
            "text": numbers.signed(ratio, f"{numbers.ratio(ratio.estimate)}×"),
        }
        for name, ratio in rows.items()
    ]
    base = plot(data).encode(y=alt.Y("row:N", sort=list(rows), axis=row_axis(look, two_lines=look.narrow)))
    x = alt.X("value:Q", scale=scale, axis=x_axis)
    layers = [
        line_at_one(x, look),
        interval_bars(base, x, 9, color=look.colour("place-1")),
        base.mark_point(filled=True, size=90, opacity=1, color=look.colour("place-1")).encode(x=x),
        base.mark_text(align="left", fontSize=12, color=look.colour("ink")).encode(
            x=alt.value(alt.ExprRef("width + 10")), text="text:N"
        ),
    ]
    return finish(layers, look, 60 + 36 * len(rows), "B against A", right_px=64)


def described_pairs(found: SetComparison) -> str:
    """The same chart in words."""
    parts = [
        f"{name} {numbers.signed(ratio, numbers.ratio(ratio.estimate))}" for name, ratio in _speeds(found)
    ]
    return f"How many times faster B is than A: {'; '.join(parts)}."
