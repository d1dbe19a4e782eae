"""A forecast against what came of it, as a document and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tierwise.advise import Verification
from tierwise.advise.differences_records import Difference, WorkChange
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table
from tierwise.report.moves import ROLE_NAMES, join
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.prediction_words import (
    caution_blocks,
    recorded_sentence,
    scenario_parts,
    warning_sentence,
)

_LEAST_PART = 0.1
"""Differences that close less of the gap are not named as its reasons."""
_FIGURES = {"rate": "the rate", "time": "the time", "p50": "the median latency", "p99": "the 99th percentile"}


def headline(found: Verification) -> str:
    """Whether the forecast came true, and if not, the reasons."""
    missed = [one for one in found.figures if not one.inside]
    if not missed:
        return "The forecast came true: every measured figure lies inside its interval."
    figures = join(
        [f"{_FIGURES[one.what]} is {_times(one.measured / one.predicted.value)}" for one in missed]
    )
    reasons = _reasons(found)
    because = "No recorded difference explains it."
    if reasons:
        because = f"Reason{'s' if len(reasons) > 1 else ''}: {join(reasons)}."
    return f"Outside the forecast: {figures} the predicted one. {because}"


def remainder_sentence(found: Verification) -> str:
    """What remains when all differences are undone; empty if there is none."""
    if found.inside or not found.differences:
        return ""
    if found.undone_per_s is None:
        return "No replay can undo these differences."
    rate = f"{numbers.significant(found.undone_per_s.value)} {found.forecast.prediction.unit} a second"
    if found.explained:
        return f"With all of this undone, the replay gives {rate}: inside the forecast. This explains it."
    rest = "The rest is other work, or the model's error."
    return f"With all of this undone, the replay gives {rate}: still outside. {rest}"


def difference_words(one: Difference) -> tuple[str, str, str]:
    """What differs, as forecast, as found."""
    role = ROLE_NAMES[one.role] if one.role else ""
    names: dict[str, tuple[str, Callable[[float], str]]] = {
        "clients": ("clients", numbers.count),
        "cores": ("cores", numbers.count),
        "arrivals": ("arrivals a second", numbers.significant),
        "memory": ("memory", numbers.size),
        "device": (f"device of {role}", _a_request),
        "placement": (f"place of {role}", numbers.significant),
    }
    name, shown = names[one.kind]
    predicted, measured = (
        two if isinstance(two, str) else shown(two) for two in (one.predicted, one.measured)
    )
    return name, predicted, measured


def change_row(one: WorkChange) -> list[Cell | str]:
    """A part of a transaction's work, before and after."""
    name = {"requests": "requests of the client", "processor time": "processor time"}.get(one.what, one.what)
    shown = numbers.microseconds if one.what == "processor time" else numbers.significant
    factor = one.measured / one.predicted if one.predicted else None
    return [
        f"{name} of {ROLE_NAMES[one.role]}" if one.role else name,
        figure(one.predicted, shown),
        figure(one.measured, shown),
        figure(factor, numbers.ratio),
    ]


def _reasons(found: Verification) -> list[str]:
    """The differences that move the rate towards the forecast; other work if they do not explain all."""
    named = [one for one in found.differences if one.closes is None or one.closes >= _LEAST_PART]
    places = [one for one in named if one.kind == "placement"]
    reasons = [_reason(one) for one in named if one.kind != "placement"]
    reasons += _misplaced(places)
    return reasons if found.explained else [*reasons, *_other_work(found)]


def _other_work(found: Verification) -> list[str]:
    """Another mix shows in what the clients ask for; the rest of the work follows from devices too."""
    mix = [one for one in found.work if one.what == "requests"]
    if mix:
        return [f"another mix of transactions ({_work_words(mix)})"]
    if any(one.kind in ("device", "placement") for one in found.differences) or not found.work:
        return []
    return [f"other work in a transaction ({_work_words(found.work)})"]


def _reason(one: Difference) -> str:
    what, predicted, measured = difference_words(one)
    match one.kind:
        case "device":
            slower = "slower" if float(one.measured) > float(one.predicted) else "faster"
            than = "when it was recorded" if one.rate_per_s is None else "its profile"
            return f"the {what} is {slower} than {than} ({measured}, not {predicted})"
        case "memory" | "arrivals":
            return f"{what} of {measured} instead of {predicted}"
        case _:
            return f"{measured} {what.removesuffix('s') if measured == '1' else what} instead of {predicted}"


def _misplaced(places: Sequence[Difference]) -> list[str]:
    """Misplaced roles, one reason for those with the same two devices."""
    roles: dict[tuple[str, str], list[str]] = {}
    for one in places:
        _, predicted, measured = difference_words(one)
        on = measured.partition(", ")[0], predicted.partition(", ")[0]
        roles.setdefault(on, []).extend([ROLE_NAMES[one.role]] if one.role else [])
    return [
        f"{join(names)} {'lie' if len(names) > 1 else 'lies'} on {measured}, not on {predicted}"
        for (measured, predicted), names in roles.items()
    ]


def _work_words(changes: list[WorkChange]) -> str:
    one = max(changes, key=_factor)
    name = change_row(one)[0]
    if not one.predicted or not one.measured:
        return f"{name} {'new' if one.measured else 'gone'}"
    return f"{_times(one.measured / one.predicted)} the {name}"


def _factor(one: WorkChange) -> float:
    low, high = sorted((one.predicted, one.measured))
    return high / low if low else float("inf")


def _times(factor: float) -> str:
    return f"{numbers.ratio(factor)} times"


def _a_request(time_us: float) -> str:
    return f"{numbers.microseconds(time_us)} a request"


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
