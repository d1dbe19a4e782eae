"""Observations as documents."""

from __future__ import annotations

from tierwise.predict.savings import Savings
from tierwise.recording import Observation
from tierwise.recording.observation import PARTS
from tierwise.report import numbers
from tierwise.report.document import Block, Table, Text, Tone, figure, table
from tierwise.report.recording.prediction import warning_texts
from tierwise.report.recording.profile_tables import profile_tables
from tierwise.report.recording.profile_words import PART_NAMES, finding, role_name

_MOST_EVENTS = 12


def observation_document(seen: Observation, saved: Savings | None = None) -> list[Block]:
    """The wait profile: the main finding, its extent, shares of time, events, sizes, and limits."""
    gains = saved or Savings()
    found = seen.break_down()
    refused = [f"what removal would save cannot be said: {gains.refused}"] if gains.refused else []
    warnings = list(dict.fromkeys([*seen.limits, *refused, *gains.warnings]))
    return [
        Text(finding(found, gains), Tone.HEADLINE),
        Text(extent(seen)),
        *profile_tables(found, gains),
        _events(seen),
        _sizes(seen),
        *warning_texts(warnings),
    ]


def extent(seen: Observation) -> str:
    """How much was seen, and from what."""
    engine = " ".join(filter(None, [seen.engine, seen.engine_version]))
    error = max(seen.sampling_errors.values(), default=1.0)
    rate = ""
    if seen.transactions is not None:
        rate = f"; {numbers.significant(seen.transactions / seen.counted_s)} transactions a second"
    sessions, samples = numbers.significant(seen.sessions), numbers.significant(seen.rate_hz)
    return (
        f"From waits only: {engine}, observed over SQL for {numbers.seconds(seen.duration_s)}, "
        f"{sessions} sessions sampled {samples} times a second{rate}. "
        f"Sampling error of the shares: {numbers.percent(error)} at most (95\u00a0%)."
    )


def _events(seen: Observation) -> Table:
    shown = table(["waited for", "part", "role"], ["sessions", "share"], "What sessions waited for")
    for wait in seen.waits[:_MOST_EVENTS]:
        shown.add(
            wait.event,
            PART_NAMES[PARTS[wait.wait_class]],
            role_name(wait.role) if wait.role else numbers.NONE,
            figure(wait.sessions, numbers.significant),
            figure(wait.sessions / seen.sessions, numbers.percent),
        )
    return shown


def _sizes(seen: Observation) -> Table:
    shown = table(["role", "on"], ["files"], "Sizes by role")
    for role, size_bytes in seen.sizes.items():
        shown.add(role, seen.devices.get(role, numbers.NONE), figure(size_bytes, numbers.size))
    return shown
