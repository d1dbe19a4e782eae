"""Differences in the conditions of two sets of runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.report.study.conditions import devices_of, facts_of, settings_of
from tierwise.results import Record, RunResult

_EXPECTED = {"Seed"}
"""Conditions that always differ between two studies and do not matter."""
_NOTHING = ["–"]


class Difference(Record):
    """One condition that differs, with all its values on each side."""

    what: str
    a: list[str]
    b: list[str]


def differences_of(a: Sequence[RunResult], b: Sequence[RunResult]) -> list[Difference]:
    """Machine, versions, workload, scale, devices; settings too where both ran the same engine."""
    facts = [facts_of(runs) for runs in (a, b)]
    facts[0]["Started"], facts[1]["Started"] = ([_day(runs)] for runs in (a, b))
    devices = [{f"Device {name}": [what] for name, what in devices_of(runs).items()} for runs in (a, b)]
    found = [*_between(facts[0], facts[1]), *_between(devices[0], devices[1])]
    engines = [{run.engine.name for run in runs} for runs in (a, b)]
    for engine in sorted(engines[0] & engines[1]):
        settings = [_settings(engine, runs) for runs in (a, b)]
        found += _between(settings[0], settings[1])
    return [one for one in found if one.what not in _EXPECTED]


def _between(a: dict[str, list[str]], b: dict[str, list[str]]) -> list[Difference]:
    return [
        Difference(what=name, a=a.get(name, _NOTHING), b=b.get(name, _NOTHING))
        for name in dict.fromkeys([*a, *b])
        if sorted(a.get(name, _NOTHING)) != sorted(b.get(name, _NOTHING))
    ]


def _settings(engine: str, runs: Sequence[RunResult]) -> dict[str, list[str]]:
    found = settings_of(engine, runs)
    common = {name: [value] for name, value in found.common.items()}
    return {f"{engine}: {name}": values for name, values in (common | found.varied).items()}


def _day(runs: Sequence[RunResult]) -> str:
    return min(run.started_at for run in runs).strftime("%Y-%m-%d")
