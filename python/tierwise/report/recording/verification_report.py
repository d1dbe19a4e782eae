"""A forecast against what came of it, as a document and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierwise.advise.differences import ConditionDifference, WorkChange
from tierwise.advise.verification import ForecastVerification, is_within_interval
from tierwise.model import numbers
from tierwise.model.names import join_words
from tierwise.model.placement import ROLE_NAMES
from tierwise.report.document import Block, Cell, Table, Text, Tone, empty_table, estimate_cell, figure_cell
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.prediction_report import (
    caution_blocks,
    recorded_sentence,
    scenario_parts,
    warning_sentence,
)

_LEAST_PART = 0.1
"""Differences that close less of the gap are not named as its reasons."""
_FIGURES = {"rate": "the rate", "time": "the time", "p50": "the median latency", "p99": "the 99th percentile"}


def verification_headline(verification: ForecastVerification) -> str:
    """Whether the forecast came true, and if not, the reasons."""
    missed = [figure for figure in verification.figures if not figure.inside]
    if not missed:
        inside = "every measured figure lies inside its interval"
        if misplaced := _misplaced(_places(verification.differences)):
            return f"{inside.capitalize()}, but {join_words(misplaced)}."
        return f"The forecast came true: {inside}." if verification.usable else f"{inside.capitalize()}."
    figures = join_words(
        [
            f"{_FIGURES[figure.what]} is {_times(figure.measured / figure.predicted.value)}"
            for figure in missed
        ]
    )
    reasons = _reasons(verification)
    because = "No recorded difference explains it."
    if reasons:
        because = f"Reason{'s' if len(reasons) > 1 else ''}: {'; '.join(reasons)}."
    return f"Outside the forecast: {figures} the predicted one. {because}"


def remainder_sentence(verification: ForecastVerification) -> str:
    """What remains when all differences are undone; empty if there is none."""
    if verification.inside or not verification.differences:
        return ""
    if verification.undone_per_s is None:
        return "No replay can undo these differences."
    unit, predicted = verification.forecast.prediction.unit, verification.forecast.prediction.rate_per_s
    rate = f"{numbers.significant_text(verification.undone_per_s.value)} {unit} a second"
    whole = all(difference.rate_per_s is not None for difference in verification.differences)
    what = "all of this" if whole else "what a replay can undo of this"
    if verification.explained:
        return f"With {what} undone, the replay gives {rate}: inside the forecast. This explains it."
    rest = "The rest is other work, or the model's error."
    if predicted and is_within_interval(verification.undone_per_s.value, predicted, verification.chance):
        return f"With {what} undone, the replay gives {rate}: inside, but a latency is still outside. {rest}"
    return f"With {what} undone, the replay gives {rate}: still outside. {rest}"


def difference_words(difference: ConditionDifference) -> tuple[str, str, str]:
    """What differs, as forecast, as found."""
    role = ROLE_NAMES[difference.role] if difference.role else ""
    names: dict[str, tuple[str, Callable[[float], str]]] = {
        "clients": ("clients", numbers.count_text),
        "cores": ("cores", numbers.count_text),
        "arrivals": ("arrivals a second", numbers.significant_text),
        "memory": ("memory", numbers.size_text),
        "device": (f"device of {role}", lambda us: f"{numbers.latency_text(us)} a request"),
        "setting": ("setting", numbers.significant_text),
        "placement": (f"place of {role}", numbers.significant_text),
    }
    name, shown = names[difference.kind]
    predicted, measured = (
        two if isinstance(two, str) else shown(two) for two in (difference.predicted, difference.measured)
    )
    return name, predicted, measured


def work_change_row(work_change: WorkChange) -> list[Cell | str]:
    """A part of a transaction's work, before and after."""
    name = "requests of the client" if work_change.what == "requests" else work_change.what
    shown = numbers.latency_text if work_change.what == "processor time" else numbers.significant_text
    factor = work_change.measured / work_change.predicted if work_change.predicted else None
    return [
        f"{name} of {ROLE_NAMES[work_change.role]}" if work_change.role else name,
        figure_cell(work_change.predicted, shown),
        figure_cell(work_change.measured, shown),
        figure_cell(factor, numbers.ratio_text),
    ]


def _reasons(verification: ForecastVerification) -> list[str]:
    """The differences that move the rate towards the forecast; other work if they do not explain all."""
    named = [
        difference
        for difference in verification.differences
        if difference.closes is None or difference.closes >= _LEAST_PART
    ]
    reasons = [_reason(difference) for difference in named if difference.kind != "placement"]
    reasons += _misplaced(_places(named))
    return reasons if verification.explained else [*reasons, *_other_work(verification)]


def _other_work(verification: ForecastVerification) -> list[str]:
    """Another mix shows in what the clients ask for; the rest of the work follows from devices too."""
    mix = [change for change in verification.work if change.what == "requests"]
    if mix:
        return [f"another mix of transactions ({_work_words(mix)})"]
    if (
        any(difference.kind in ("device", "placement") for difference in verification.differences)
        or not verification.work
    ):
        return []
    return [f"other work in a transaction ({_work_words(verification.work)})"]


def _reason(difference: ConditionDifference) -> str:
    what, predicted, measured = difference_words(difference)
    match difference.kind:
        case "device":
            slower = "slower" if float(difference.measured) > float(difference.predicted) else "faster"
            than = "when it was recorded" if difference.rate_per_s is None else "its profile"
            return f"the {what} is {slower} than {than} ({measured}, not {predicted})"
        case "setting":
            return f"{measured} instead of {predicted}"
        case "memory" | "arrivals":
            return f"{what} of {measured} instead of {predicted}"
        case _:
            return f"{measured} {what.removesuffix('s') if measured == '1' else what} instead of {predicted}"


def _places(differences: Sequence[ConditionDifference]) -> list[ConditionDifference]:
    return [difference for difference in differences if difference.kind == "placement"]


def _misplaced(places: Sequence[ConditionDifference]) -> list[str]:
    """Misplaced roles, one reason for those with the same two devices."""
    roles: dict[tuple[str, str], list[str]] = {}
    for place in places:
        _, predicted, measured = difference_words(place)
        on = measured if place.beside else _kind(measured), _kind(predicted)
        roles.setdefault(on, []).extend([ROLE_NAMES[place.role]] if place.role else [])
    sentences = []
    for (measured, predicted), names in roles.items():
        who = join_words(names)
        verb = "lie" if len(names) > 1 or who.endswith("s") else "lies"
        sentences.append(f"{who} {verb} on {measured}, not on {predicted}")
    return sentences


def _kind(device: str) -> str:
    """A device without its size and its example."""
    return device.partition(", ")[0]


def _work_words(changes: list[WorkChange]) -> str:
    change = max(changes, key=_factor)
    name = work_change_row(change)[0]
    if not change.predicted or not change.measured:
        return f"{name} {'new' if change.measured else 'gone'}"
    return f"{_times(change.measured / change.predicted)} the {name}"


def _factor(work_change: WorkChange) -> float:
    low, high = sorted((work_change.predicted, work_change.measured))
    return high / low if low else float("inf")


def _times(factor: float) -> str:
    return f"{numbers.ratio_text(factor)} times"


_UNUSABLE = "The recording after is not usable: it neither confirms the forecast nor refutes it."
_SHOWN: dict[str, Callable[[float], str]] = {
    "rate": numbers.significant_text,
    "time": numbers.seconds_text,
    "p50": numbers.latency_text,
    "p99": numbers.latency_text,
}


def verification_document(verification: ForecastVerification) -> list[Block]:
    """Whether it can be judged, inside or outside, the figures, and what differs from the forecast."""
    forecast = verification.forecast
    label = f", {forecast.label}" if forecast.label else ""
    asked = ", ".join(scenario_parts(forecast.prediction.scenario))
    blocks: list[Block] = [
        *doubt_texts(verification.usable, verification.remarks, _UNUSABLE),
        Text(verification_headline(verification), Tone.HEADLINE),
        Text(f"Forecast: {asked} ({forecast.file}{label}), from {recorded_sentence(forecast.run)}"),
        Text(f"After: {recorded_sentence(verification.after)}"),
        _figures(verification),
        Text(
            f"Intervals are widened by {numbers.percent_text(verification.chance)}, which chance explains.",
            Tone.QUIET,
        ),
    ]
    blocks += [_differences(verification)] if verification.differences else []
    blocks += [Text(sentence) for sentence in [remainder_sentence(verification)] if sentence]
    blocks += [block for block in (_roles(verification), _work(verification)) if block.rows]
    return [*blocks, *caution_blocks(map(warning_sentence, verification.warnings))]


def _figures(verification: ForecastVerification) -> Table:
    shown = empty_table(
        ["figure"], ["predicted", "measured", "measured /\npredicted", "interval"], "Predicted and measured"
    )
    names = {
        "rate": f"{verification.forecast.prediction.unit}/s",
        "time": "time",
        "p50": "p50 latency",
        "p99": "p99 latency",
    }
    for row in verification.figures:
        text = _SHOWN[row.what]
        tone, verdict = (Tone.BETTER, "inside") if row.inside else (Tone.WORSE, "outside")
        shown.add(
            names[row.what],
            estimate_cell(row.predicted, text),
            figure_cell(row.measured, text),
            figure_cell(row.measured / row.predicted.value, numbers.ratio_text),
            Cell(verdict, tone),
        )
    return shown


def _differences(verification: ForecastVerification) -> Table:
    unit = verification.forecast.prediction.unit
    figures = [f"{unit}/s\nif undone", "of the gap"]
    shown = empty_table(
        ["what differs", "in the forecast", "after"], figures, "What differs from the forecast's conditions"
    )
    for difference in verification.differences:
        undone = figure_cell(difference.rate_per_s, numbers.significant_text)
        shown.add(*difference_words(difference), undone, figure_cell(difference.closes, numbers.percent_text))
    return shown


def _roles(verification: ForecastVerification) -> Table:
    figures = ["predicted", "measured", "simulated at\nthis load"]
    shown = empty_table([], figures, "Device time of a request", names=["role", "forecast's device"])
    for role in verification.roles:
        times = (role.predicted_us, role.measured_us, role.simulated_us)
        shown.add(role.role.value, role.device, *(figure_cell(time, numbers.latency_text) for time in times))
    return shown


def _work(verification: ForecastVerification) -> Table:
    title = "What a transaction asks for, where it changed"
    shown = empty_table(["of a transaction"], ["before", "after", "after /\nbefore"], title)
    for change in verification.work:
        shown.add(*work_change_row(change))
    return shown
