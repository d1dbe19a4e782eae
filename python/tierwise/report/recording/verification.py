"""A forecast against what came of it, as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tierwise.advise import Verification
from tierwise.advise.differences_records import Difference
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table
from tierwise.report.recording.cautions import caution_blocks, warning_sentence
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.prediction_words import recorded_sentence, scenario_parts
from tierwise.report.recording.verification_words import (
    change_row,
    difference_words,
    headline,
    remainder_sentence,
)

_UNUSABLE = "The recording after is not usable: it neither confirms the forecast nor refutes it."
_SHOWN: dict[str, Callable[[float], str]] = {
    "rate": numbers.significant,
    "time": numbers.seconds,
    "p50": numbers.microseconds,
    "p99": numbers.microseconds,
}


def verification_document(found: Verification) -> list[Block]:
    """Whether it can be judged, inside or outside, the figures, and what differs from the forecast."""
    forecast = found.forecast
    label = f", {forecast.label}" if forecast.label else ""
    asked = ", ".join(scenario_parts(forecast.prediction.scenario))
    blocks: list[Block] = [
        *unusable_texts(found.usable, found.remarks, _UNUSABLE),
        Text(headline(found), Tone.HEADLINE),
        Text(f"Forecast: {asked} ({forecast.file}{label}), from {recorded_sentence(forecast.run)}"),
        Text(f"After: {recorded_sentence(found.after)}"),
        _figures(found),
        Text(f"Intervals are widened by {numbers.percent(found.chance)}, which chance explains.", Tone.QUIET),
    ]
    blocks += [_differences(found)] if found.differences else []
    blocks += [Text(sentence) for sentence in [remainder_sentence(found)] if sentence]
    blocks += [one for one in (_roles(found), _work(found)) if one.rows]
    return [*blocks, *caution_blocks(map(warning_sentence, found.warnings))]


def _figures(found: Verification) -> Table:
    shown = table(
        ["figure"], ["predicted", "measured", "measured /\npredicted", "interval"], "Predicted and measured"
    )
    names = {
        "rate": f"{found.forecast.prediction.unit}/s",
        "time": "time",
        "p50": "p50 latency",
        "p99": "p99 latency",
    }
    for one in found.figures:
        text = _SHOWN[one.what]
        tone, verdict = (Tone.BETTER, "inside") if one.inside else (Tone.WORSE, "outside")
        shown.add(
            names[one.what],
            estimate(one.predicted, text),
            figure(one.measured, text),
            figure(one.measured / one.predicted.value, numbers.ratio),
            Cell(verdict, tone),
        )
    return shown


def _differences(found: Verification) -> Table:
    unit = found.forecast.prediction.unit
    figures = [f"{unit}/s\nif undone", "of the gap"]
    shown = table(
        ["what differs", "in the forecast", "after"], figures, "What differs from the forecast's conditions"
    )
    for one in found.differences:
        shown.add(*_difference(one))
    return shown


def _difference(one: Difference) -> Iterator[Cell | str]:
    yield from difference_words(one)
    yield figure(one.rate_per_s, numbers.significant)
    yield figure(one.closes, numbers.percent)


def _roles(found: Verification) -> Table:
    figures = ["predicted", "measured", "simulated at\nthis load"]
    shown = table([], figures, "Device time of a request", names=["role", "forecast's device"])
    for one in found.roles:
        times = (one.predicted_us, one.measured_us, one.simulated_us)
        shown.add(one.role.value, one.device, *(figure(time, numbers.microseconds) for time in times))
    return shown


def _work(found: Verification) -> Table:
    title = "What a transaction asks for, where it changed"
    shown = table(["of a transaction"], ["before", "after", "after /\nbefore"], title)
    for one in found.work:
        shown.add(*change_row(one))
    return shown
