"""Predictions as dots with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.extras import alt
from tierwise.model.statistics import Interval
from tierwise.predict import Prediction
from tierwise.report import numbers
from tierwise.report.charts.builders import dot, dot_chart
from tierwise.report.charts.look import WIDE, Look, zero_x
from tierwise.report.recording.prediction_words import scenario_parts


def answers_chart(base: Prediction, answers: Sequence[Prediction], look: Look = WIDE) -> alt.LayerChart:
    """Rate, or time for work done once, of the recorded run and of each answer that has one."""
    shown = [base, *(one for one in answers if one.rate_per_s and one.scenario.changes)]
    title = "Predicted time (s)" if base.once else f"Predicted {base.unit} a second"
    text = numbers.seconds if base.once else numbers.significant
    dots = [
        dot(
            ", ".join(scenario_parts(one.scenario)), "", Interval(found.value, found.low, found.high, 1), text
        )
        for one in shown
        if (found := one.elapsed_s if base.once else one.rate_per_s)
    ]
    return dot_chart(dots, zero_x(f"{title}, 95 % interval", look), {"": "place-1"}, look, title)
