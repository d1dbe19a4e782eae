"""Predictions: dots with intervals, on a scale from zero."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from tierwise.predict import Estimate, Prediction
from tierwise.report import numbers
from tierwise.report.charts.look import WIDE, Look, axis, finish, interval_bars, plot, row_axis
from tierwise.report.recording.prediction_words import scenario_parts

_ROW_PX = 48
_AXIS_PX = 46


def answers_chart(base: Prediction, answers: Sequence[Prediction], look: Look = WIDE) -> alt.LayerChart:
    """Rate, or time for work done once, of the recorded run and of each answer that has one."""
    shown = [base, *(one for one in answers if one.rate_per_s and one.scenario.changes)]
    title = "Predicted time (s)" if base.once else f"Predicted {base.unit} a second"
    data = [
        _datum(", ".join(scenario_parts(one.scenario)), figure, base.once)
        for one in shown
        if (figure := one.elapsed_s if base.once else one.rate_per_s)
    ]
    x = alt.X(
        "value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=axis(f"{title}, 95 % interval", tickCount=8)
    )
    names = [str(datum["scenario"]) for datum in data]
    rows = plot(data).encode(y=alt.Y("scenario:N", sort=names, axis=row_axis(look, two_lines=True)))
    colour = look.colour("place-1")
    dots = rows.mark_point(filled=True, size=95, opacity=1, color=colour).encode(x=x)
    labels = rows.mark_text(align="left", fontSize=13, color=look.colour("ink")).encode(
        x=alt.value(alt.ExprRef("width + 10")), text="text:N"
    )
    layers = [interval_bars(rows, x, 9, color=colour), dots, labels]
    return finish(layers, look, _AXIS_PX + _ROW_PX * len(data), title)


def _datum(scenario: str, figure: Estimate, is_time: bool) -> dict[str, object]:
    text = numbers.seconds if is_time else numbers.significant
    ends = numbers.span(text(figure.low), text(figure.high))
    shown = f"{text(figure.value)}  ({ends})"
    return {
        "scenario": scenario,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "text": shown,
    }
