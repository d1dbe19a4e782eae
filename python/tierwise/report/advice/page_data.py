"""The data of the page: recorded roles, devices, and the figures of every placement in packed columns."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tierwise.advise import DeviceWear
from tierwise.advise.alternatives import SettingChange
from tierwise.advise.priced_placement import MARGIN
from tierwise.model import numbers
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, Prediction, resolve_device
from tierwise.predict.inseparable_roles import Unit
from tierwise.report.advice.advice_survey import AdviceSurvey
from tierwise.report.advice.page_decision import STATES, alternative_choices, device_risk
from tierwise.report.palette import DARK, LIGHT, ROLE_COLOURS
from tierwise.report.recording.decision_words import paid_part_words
from tierwise.report.recording.tables_report import listed_relations

_FIGURES = 4
"""Significant figures that a column keeps."""
Column = list[float | None]


def advice_page_data(subject: AdviceSurvey, live: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Everything that the scripts of the page read, as JSON values.

    Columns of ``figures`` have an entry for each placement, by its number (:meth:`Survey.number`); ``null``
    where there is no answer. Rates are per second, latencies in µs, costs per month, wear in months.
    ``choices`` are the answers beside placements (``report/advice/page_decision.py``), ``choice_figures``
    theirs. ``billed`` has for each placement the indexes of the ``bills`` of its devices, whose sum, less
    the rent that ends, is its cost.

    Args:
        subject: the advice and its placements.
        live: what the server tells its own script; not given for a file.
    """
    run, survey = subject.advice.run, subject.survey
    choices = alternative_choices(subject, live=live is not None)
    answers = [*survey.predictions, *(choice.prediction for choice in choices)]
    reasons = sorted({answer.bound.because for answer in answers if answer and answer.bound})
    figures = _columns(
        survey.predictions,
        reasons,
        [subject.wear(prediction) if prediction else [] for prediction in survey.predictions],
        [subject.cost_per_month(prediction) if prediction else None for prediction in survey.predictions],
    )
    figures["told"] = _each(survey.predictions, lambda prediction: float(subject.is_sure_gain(prediction)))
    because = {role: group.because for group in subject.advice.decision.together for role in group.roles}
    bills, billed = _bills(subject)
    needed = {space.role: space.size_bytes for space in subject.advice.spaces}
    data = {
        "recording": {"name": subject.recording.name, "unit": run.unit, "once": run.once},
        "currency": subject.currency,
        "budget": subject.advice.budget_per_month,
        "margin": MARGIN,
        "command": subject.command,
        "devices": [_device(subject, device) for device in survey.devices],
        "roles": [
            _card(subject.advice.recorded, unit, needed, because.get(unit[0], "")) for unit in survey.placed
        ],
        "left": [_card(subject.advice.recorded, (role,), needed) for role in survey.left],
        "bills": bills,
        "billed": billed,
        "advised": survey.number(subject.placement) or 0,
        "figures": figures,
        "choices": [choice.fields for choice in choices],
        "choice_figures": _columns(
            [choice.prediction for choice in choices],
            reasons,
            [choice.wear for choice in choices],
            [choice.cost_per_month for choice in choices],
        ),
        "settings": [_setting(setting) for setting in subject.advice.settings],
        "tables": [row.name for row in listed_relations(subject.advice.tables)],
        "reasons": reasons,
        "states": STATES,
        "colours": {"light": LIGHT, "dark": DARK},
    }
    return data if live is None else data | {"live": dict(live)}


def _device(subject: AdviceSurvey, device: str) -> dict[str, Any]:
    least, most = subject.price(device)
    if device == RECORDED:
        known = dict.fromkeys(name for name in subject.advice.run.devices.values() if name != RECORDED)
        summary = "; ".join(known) or "where the files were when they were recorded"
    else:
        summary = resolve_device(device).profile.summary
    return {
        "name": device,
        "quoted": shlex.quote(device),
        "summary": summary,
        "least": _short(least),
        "most": _short(most),
        **asdict(device_risk(device, subject.advice.run.engine)),
    }


def _card(
    recorded: Prediction, unit: Unit, needed_bytes: Mapping[Role, int], because: str = ""
) -> dict[str, Any]:
    """A role, or roles that move as one."""
    loads = [recorded.io[role] for role in unit if role in recorded.io]
    return {
        "name": unit[0].value,
        "roles": [role.value for role in unit],
        "because": because if len(unit) > 1 else "",
        "size_bytes": sum(needed_bytes.get(role, 0) for role in unit),
        "requests_per_s": _short(sum(load.requests_per_s for load in loads)),
        "share": _short(max((load.busy_share for load in loads), default=0.0)),
        "colour": ROLE_COLOURS[unit[0].value],
    }


def _bills(subject: AdviceSurvey) -> tuple[list[dict[str, Any]], list[list[int] | None]]:
    """Each bill of a device once, and the bills of each placement."""
    positions: dict[str, int] = {}
    bills: list[dict[str, Any]] = []
    billed: list[list[int] | None] = []
    for prediction in subject.survey.predictions:
        numbers = []
        for bill in subject.bill(prediction).devices if prediction else ():
            key = bill.model_dump_json()
            if key not in positions:
                positions[key] = len(bills)
                parts = [[paid_part_words(part), round(part.per_month, 4)] for part in bill.parts]
                bills.append({"device": bill.device, "amount": round(bill.per_month, 4), "parts": parts})
            numbers.append(positions[key])
        billed.append(numbers if prediction else None)
    return bills, billed


def _setting(move: SettingChange) -> dict[str, Any]:
    bound = "no bound" if move.loses_s is None else numbers.seconds_text(move.loses_s)
    loses = f"{move.loses} ({bound})" if move.loses_s != 0 else "nothing is lost"
    return {
        "name": move.setting,
        "quoted": shlex.quote(move.setting),
        "loses": loses,
        "harms": move.loses_s != 0,
    }


def _columns(
    predictions: Sequence[Prediction | None],
    reasons: Sequence[str],
    wears: Sequence[Sequence[DeviceWear]],
    costs: Column,
) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name, unit in (
        ("rate", "rate_per_s"),
        ("speedup", "speedup"),
        ("elapsed_s", "elapsed_s"),
        ("p50_us", "p50_us"),
        ("p99_us", "p99_us"),
    ):
        values = [getattr(prediction, unit) if prediction else None for prediction in predictions]
        for end, key in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            columns[key] = [figure and _short(getattr(figure, end)) for figure in values]
    columns["bound"] = _each(
        predictions, lambda prediction: prediction.bound.speedup if prediction.bound else None
    )
    columns["reason"] = _each(
        predictions,
        lambda prediction: float(reasons.index(prediction.bound.because)) if prediction.bound else None,
    )
    columns["wear_months"] = [_first([device_wear.months for device_wear in wear]) for wear in wears]
    columns["wear_months_predicted"] = [
        _first([device_wear.predicted_months for device_wear in wear]) for wear in wears
    ]
    columns["cost"] = [_short(cost) for cost in costs]
    return columns


def _each(predictions: Sequence[Prediction | None], value: Callable[[Prediction], float | None]) -> Column:
    return [None if prediction is None else _short(value(prediction)) for prediction in predictions]


def _first(months: Sequence[float | None]) -> float | None:
    """Months until the first new device is worn out; ``None`` if no profile tells, or none wears out."""
    return _short(min((month for month in months if month is not None), default=None))


def _short(value: float | None) -> float | None:
    """A number with few digits, whole where it can be: the file stays small."""
    if value is None:
        return None
    rounded = float(f"{value:.{_FIGURES}g}")
    return int(rounded) if rounded == int(rounded) else rounded
