"""Predictions as dots with intervals, and predicted against measured."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.extras import alt
from tierwise.model.statistics import Interval
from tierwise.predict import Prediction
from tierwise.report import numbers
from tierwise.report.charts.builders import dot, dot_chart
from tierwise.report.charts.look import (
    WIDE,
    Look,
    axis,
    colours,
    finish,
    legend,
    log_scale,
    plot,
    shape_legend,
    zero_x,
)
from tierwise.report.recording.prediction_words import scenario_parts
from tierwise.validation import Pair, by


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


_HEIGHT_PX = 560
_FIGURES = ("measured", "predicted", "low", "high")
_UNIT = "s (for a job, or for a thousand transactions)"
_HUES = ["place-1", "place-2", "place-3", "place-4", "place-6", "wait-lock", "wait-log_lock", "place-5"]


def accuracy_chart(pairs: Sequence[Pair], look: Look) -> alt.LayerChart:
    """Predicted time for the same work, with its interval, against measured time, with a line at equality.

    Args:
        pairs: answered pairs, at least one.
        look: of the drawing.
    """
    data = [_datum(pair) for pair in pairs if pair.predicted is not None]
    values = [float(datum[name]) for datum in data for name in _FIGURES]  # type: ignore[arg-type]
    scale, ticks = log_scale(values)
    x = alt.X("measured:Q", scale=scale, axis=axis(f"Measured, {_UNIT}", values=ticks))
    y = alt.Y("predicted:Q", scale=scale, axis=axis(f"Predicted, {_UNIT}", values=ticks))
    names = {_words(name): _HUES[at % len(_HUES)] for at, name in enumerate(by(pairs, "family"))}
    colour = alt.Color("family:N", scale=colours(names, look), legend=legend(look, 4))
    base = plot(data).encode(x=x, color=colour)
    low, high = scale["domain"]
    ends = plot([{"at": low}, {"at": high}])
    line = ends.mark_line(strokeDash=[2, 3], color=look.colour("muted")).encode(
        x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale)
    )
    layers = [
        line,
        base.mark_rule(strokeWidth=2, opacity=0.35).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_point(size=55, opacity=0.9, filled=True).encode(
            y=y, shape=alt.Shape("recorded:N", legend=shape_legend(look))
        ),
    ]
    return finish(layers, look, _HEIGHT_PX, "Predicted against measured")


def _datum(pair: Pair) -> dict[str, object]:
    """Times for the work: of a job, or of a thousand transactions."""
    assert pair.predicted is not None
    rates = {
        "predicted": pair.predicted.value,
        "measured": pair.measured.value,
        "low": pair.predicted.high,
        "high": pair.predicted.low,
    }
    work = 1 if pair.laps else 1000
    return {
        "family": _words(pair.family),
        "recorded": f"recorded on {pair.recorded}",
        **{name: work / value for name, value in rates.items()},
    }


def _words(family: str) -> str:
    return family.replace("_", " ")
