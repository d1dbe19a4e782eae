"""Profiles of recordings in words."""

from __future__ import annotations

from tierwise.model.placement import Role
from tierwise.predict.savings import EVERYTHING, Savings
from tierwise.recording.breakdown import Breakdown, ClassTime, Part, ThreadClass
from tierwise.report import numbers
from tierwise.report.moves import ROLE_NAMES

PART_NAMES: dict[Part, str] = {
    "cpu": "on CPU",
    "runnable": "waiting for a core",
    "log_device": "log device",
    "log_queue": "behind others' log flush",
    "read": "reading files",
    "write": "writing files",
    "lock": "locks, other threads",
    "client": "client",
    "sleep": "asleep, or no work",
    "other": "other",
}
CLASS_NAMES: dict[ThreadClass, str] = {
    "session": "sessions",
    "client": "clients",
    "log_writer": "log writer",
    "background": "background",
    "kernel": "kernel",
    "other": "other threads",
}
_LEAST_SHARE = 0.01
"""Savings below this share are treated as none."""


def role_name(role: Role | None) -> str:
    """Name of a role, or of requests without a file."""
    return role.value if role else "no file"


def chief_class(breakdown: Breakdown) -> ClassTime | None:
    """The sessions; without sessions, the class with the most lifetime."""
    sessions = [class_time for class_time in breakdown.classes if class_time.name == "session"]
    ordered = sorted(breakdown.classes, key=lambda class_time: class_time.lived_s, reverse=True)
    return next(iter([*sessions, *ordered]), None)


def finding(breakdown: Breakdown, saved: Savings) -> str:
    """The main finding as a sentence."""
    return " ".join(filter(None, [_time_sentence(breakdown), _saving_sentence(saved)]))


def _time_sentence(breakdown: Breakdown) -> str:
    chief = chief_class(breakdown)
    if chief is None:
        return "No thread was seen."
    ordered = sorted(chief.parts.items(), key=lambda item: item[1], reverse=True)[:3]
    parts = [f"{numbers.percent(share)} {PART_NAMES[part]}" for part, share in ordered if share > 0]
    name = CLASS_NAMES[chief.name].capitalize()
    return f"{name} spent {', '.join(parts)} of their time."


def _saving_sentence(saved: Savings) -> str:
    first = next((row for row in saved.rows if row.role != EVERYTHING), None)
    if first is None or first.share is None:
        return ""
    if first.share < _LEAST_SHARE:
        return "No role's device costs anything worth naming."
    name = ROLE_NAMES[Role(first.role)]
    share = numbers.percent(first.share)
    return f"If {name} took no time at its device, {share} of the time would be saved at most."
