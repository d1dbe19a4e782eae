"""Frontiers: rate of commits against the age of what a power cut loses, a fleet's gain against its budget."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.fleet import FleetAdvice
from tierwise.fleet.records import Curve
from tierwise.model.extras import alt
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.charts.look import Figure, Look, axis, colours, finish, legend, log_scale, plot
from tierwise.report.durability.findings import CutRow
from tierwise.report.durability.words import sentence
from tierwise.report.palette import placement_names
from tierwise.report.recording.money_words import money

_NONE_MS = 0.3
"""Where rows without loss stand on the axis."""
_BEYOND = 4.0
"""Rows that were damaged stand this factor right of the greatest loss."""


def frontier_chart(rows: Sequence[CutRow], baseline: str, look: Look) -> alt.LayerChart:
    """One point for each setting on each placement; both axes are logarithmic."""
    shown = [row for row in rows if row.rate is not None]
    most_ms = max([10.0, *(row.most_lost_ms for row in shown if row.most_lost_ms)])
    damaged_ms = most_ms * _BEYOND
    any_damaged = any(row.damaged for row in shown)
    last_ms = damaged_ms if any_damaged else most_ms
    data = [_point(row, damaged_ms) for row in shown]
    y_scale, y_ticks = log_scale([row.rate.estimate for row in shown if row.rate])
    decades = [10.0**power for power in range(7) if 10.0**power <= most_ms]
    x = alt.X(
        "age:Q",
        scale=alt.Scale(type="log", domain=[_NONE_MS * 0.7, last_ms * 1.6], nice=False),
        axis=axis(
            "age of the oldest lost commit",
            values=[_NONE_MS, *decades, *([damaged_ms] if any_damaged else [])],
            labelExpr=f"datum.value < 1 ? 'none lost' : datum.value > {most_ms} ? 'damaged' "
            ": datum.value < 1000 ? datum.value + ' ms' : datum.value / 1000 + ' s'",
        ),
    )
    y = alt.Y(
        "rate:Q", scale=y_scale, axis=axis("commits a second (log scale)", values=y_ticks, format=",~g")
    )
    names = placement_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    colour = alt.Color(
        "placement:N", scale=colours(names, look), legend=legend(look, 2 if look.narrow else 5)
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=["point", "at least", "damaged"], range=["circle", "triangle-right", "cross"]),
        legend=None,
    )
    base = plot(data).encode(x=x, y=y)
    rings = base.transform_filter("datum.frontier").mark_point(
        size=260, strokeWidth=1.5, color=look.colour("ink"), opacity=0.7
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(color=colour, shape=shape)
    labels = base.mark_text(
        align="left", dx=11, fontSize=10 if look.narrow else 11, color=look.colour("muted"), limit=180
    ).encode(text="label:N")
    return finish([rings, points, labels], look, 340, "Rate against loss", right_px=90)


def _point(row: CutRow, damaged_ms: float) -> dict[str, object]:
    assert row.rate is not None
    kind = "damaged" if row.damaged else "at least" if row.at_least else "point"
    return {
        "placement": row.placement,
        "age": damaged_ms if row.damaged else max(row.most_lost_ms or 0, _NONE_MS),
        "rate": row.rate.estimate,
        "kind": kind,
        "frontier": row.on_frontier,
        "label": row.durability,
    }


def described_frontier(rows: Sequence[CutRow]) -> str:
    """The same chart in words."""
    rates = [
        f"{sentence(row)} {numbers.significant(row.rate.estimate)} commits/s." for row in rows if row.rate
    ]
    return " ".join(["Rate of commits against loss.", *rates])


_HEIGHT_PX = 300


def curve_figure(advice: FleetAdvice) -> Figure:
    """A point for each budget, at the cost of its best set, and a ring for the budget that was asked."""
    points = [
        f"{money(point.budget_per_month, advice.currency)}: {numbers.percent(point.gain_share)}"
        for point in advice.curve
    ]
    description = f"Gain against budget. {'; '.join(points)}."
    return Figure("curve", description, lambda look: _curve(advice, look))


def _curve(advice: FleetAdvice, look: Look) -> alt.LayerChart:
    unit = f"{SYMBOLS.get(advice.currency, advice.currency)}/month"
    x = alt.X(
        "cost:Q", scale=alt.Scale(nice=True), axis=axis(f"cost ({unit})", tickCount=4 if look.narrow else 8)
    )
    y = alt.Y(
        "gain:Q", scale=alt.Scale(domain=[0, 100]), axis=axis("% of all that could be gained", tickCount=5)
    )
    base = plot([_spent(point, advice) for point in advice.curve]).encode(x=x, y=y)
    colour = look.colour("place-1")
    layers = [
        base.mark_line(strokeWidth=1.5, opacity=0.55, interpolate="step-after", color=colour),
        base.mark_point(filled=True, size=60, opacity=1, color=colour),
        base.transform_filter("datum.asked").mark_point(
            size=260, strokeWidth=2, color=look.colour("place-2")
        ),
    ]
    return finish(layers, look, _HEIGHT_PX, "Gain against cost", right_px=24)


def _spent(point: Curve, advice: FleetAdvice) -> dict[str, object]:
    return {
        "cost": point.cost_per_month,
        "gain": 100 * point.gain_share,
        "asked": point.budget_per_month == advice.budget_per_month,
    }
