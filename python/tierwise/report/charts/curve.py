"""A fleet's gain against its budget."""

from __future__ import annotations

from tierwise.fleet.records import Curve, FleetAdvice
from tierwise.model.extras import alt
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.charts.look import Figure, Look, axis, finish, plot
from tierwise.report.recording.money_words import money

_HEIGHT_PX = 300


def curve_figure(advice: FleetAdvice) -> Figure:
    """A point for each budget, at the cost of its best set, and a ring for the budget that was asked."""
    points = [
        f"{money(one.budget_per_month, advice.currency)}: {numbers.percent(one.gain_share)}"
        for one in advice.curve
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
    base = plot([_spent(one, advice) for one in advice.curve]).encode(x=x, y=y)
    colour = look.colour("place-1")
    layers = [
        base.mark_line(strokeWidth=1.5, opacity=0.55, interpolate="step-after", color=colour),
        base.mark_point(filled=True, size=60, opacity=1, color=colour),
        base.transform_filter("datum.asked").mark_point(
            size=260, strokeWidth=2, color=look.colour("place-2")
        ),
    ]
    return finish(layers, look, _HEIGHT_PX, "Gain against cost", right_px=24)


def _spent(one: Curve, advice: FleetAdvice) -> dict[str, object]:
    return {
        "cost": one.cost_per_month,
        "gain": 100 * one.gain_share,
        "asked": one.budget_per_month == advice.budget_per_month,
    }
