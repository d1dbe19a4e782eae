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
    shown = [base, *(answer for answer in answers if answer.rate_per_s and answer.scenario.changes)]
    title = "Predicted time (s)" if base.once else f"Predicted {base.unit} a second"
    text = numbers.seconds if base.once else numbers.significant
    dots = [
        dot(
            ", ".join(scenario_parts(answer.scenario)),
            "",
            Interval(elapsed_s.value, elapsed_s.low, elapsed_s.high, 1),
            text,
        )
        for answer in shown
        if (elapsed_s := answer.elapsed_s if base.once else answer.rate_per_s)
    ]
    return dot_chart(dots, zero_x(f"{title}, 95 % interval", look), {"": "place-1"}, look, title)
