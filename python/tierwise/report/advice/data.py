"""The data of the page: recorded roles, devices, and the figures of every placement in packed columns."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tierwise.model.roles import Role
from tierwise.predict import RECORDED, Estimate, Prediction, resolve
from tierwise.report.advice.join import Subject
from tierwise.report.advice.risks import STATES, risk
from tierwise.report.palette import DARK, LIGHT, ROLE_COLOURS

_FIGURES = 4
"""Significant figures that a column keeps."""
Column = list[float | None]


def page_data(subject: Subject, live: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Everything that the scripts of the page read, as JSON values.

    Columns of ``figures`` have an entry for each placement, by its number (:meth:`Survey.number`); ``null``
    where there is no answer. Rates are per second, latencies in µs, costs per month, wear in months.

    Args:
        subject: the advice and its placements.
        live: what the server tells its own script; not given for a file.
    """
    run, survey = subject.advice.run, subject.survey
    reasons = sorted({one.bound.because for one in survey.predictions if one and one.bound})
    data = {
        "recording": {
            "name": subject.recording.name,
            "unit": run.unit,
            "once": run.once,
        },
        "currency": subject.currency,
        "budget": subject.advice.budget_per_month,
        "margin": subject.margin,
        "command": subject.command,
        "devices": [_device(subject, device) for device in survey.devices],
        "roles": [_role(subject.advice.recorded, role, run.footprints) for role in survey.roles],
        "left": [_role(subject.advice.recorded, role, run.footprints) for role in survey.left],
        "advised": survey.number(subject.placement) or 0,
        "figures": _figures(subject, reasons),
        "reasons": reasons,
        "states": STATES,
        "colours": {"light": LIGHT, "dark": DARK},
    }
    return data if live is None else data | {"live": dict(live)}


def _device(subject: Subject, device: str) -> dict[str, Any]:
    about = risk(device, subject.advice.run.engine)
    least, most = subject.price(device)
    recorded = device == RECORDED
    return {
        "name": device,
        "quoted": shlex.quote(device),
        "summary": _recorded_summary(subject) if recorded else resolve(device).profile.summary,
        "least": _short(least),
        "most": _short(most),
        "state": about.state,
        "power_cut": about.power_cut,
        "tested": about.tested,
        "death": about.death,
        "alone": about.alone,
    }


def _recorded_summary(subject: Subject) -> str:
    profiles = dict.fromkeys(subject.advice.run.devices.values())
    known = [profile for profile in profiles if profile != RECORDED]
    return "; ".join(known) or "where the files were when they were recorded"


def _role(recorded: Prediction, role: Role, footprints: Mapping[Role, int]) -> dict[str, Any]:
    load = recorded.io.get(role)
    requests = load.reads_per_s + load.writes_per_s + load.flushes_per_s if load else 0.0
    return {
        "name": role.value,
        "size_bytes": footprints.get(role, 0),
        "requests_per_s": _short(requests),
        "share": _short(load.busy_share if load else 0.0),
        "colour": ROLE_COLOURS[role.value],
    }


def _figures(subject: Subject, reasons: Sequence[str]) -> dict[str, Column]:
    predictions = subject.survey.predictions
    columns: dict[str, Column] = {}
    for name, unit in (
        ("rate", "rate_per_s"),
        ("speedup", "speedup"),
        ("elapsed_s", "elapsed_s"),
        ("p50_us", "p50_us"),
        ("p99_us", "p99_us"),
    ):
        found = [getattr(one, unit) if one else None for one in predictions]
        for end, key in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            columns[key] = [_end(figure, end) for figure in found]
    columns["bound"] = _each(predictions, lambda one: one.bound.speedup if one.bound else None)
    columns["reason"] = _each(
        predictions, lambda one: float(reasons.index(one.bound.because)) if one.bound else None
    )
    columns["wear_months"] = _each(predictions, lambda one: _wear_months(subject, one))
    columns["cost"] = _each(
        predictions,
        subject.cost_per_month,
    )
    return columns


def _each(predictions: Sequence[Prediction | None], value: Callable[[Prediction], float | None]) -> Column:
    return [None if one is None else _short(value(one)) for one in predictions]


def _wear_months(subject: Subject, prediction: Prediction) -> float | None:
    """Months until the first new device is worn out; ``None`` if no profile tells, or none wears out."""
    known = [one.months for one in subject.wear(prediction) if one.months is not None]
    return min(known, default=None)


def _end(figure: Estimate | None, end: str) -> float | None:
    return None if figure is None else _short(getattr(figure, end))


def _short(value: float | None) -> float | None:
    """A number with few digits, whole where it can be: the file stays small."""
    if value is None:
        return None
    rounded = float(f"{value:.{_FIGURES}g}")
    return int(rounded) if rounded == int(rounded) else rounded
