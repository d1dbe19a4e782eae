"""A verified forecast in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierwise.advise import Verification
from tierwise.advise.differences_records import Difference, WorkChange
from tierwise.report import numbers
from tierwise.report.document import Cell, figure
from tierwise.report.study.moves import ROLE_NAMES, join

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
