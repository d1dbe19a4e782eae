"""Two sets of results side by side: conditions, figures, differences and their certainty. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from tierwise.lab.analysis.lap_comparison import lap_labels, laps_named
from tierwise.lab.analysis.measures import (
    MEASURES,
    Kind,
    MeasuredPart,
    lap_part,
    measure_title,
    whole_run_part,
)
from tierwise.lab.analysis.placement_rows import Measure, comparison_measure
from tierwise.lab.analysis.study_conditions import (
    constant_and_varying_facts,
    device_descriptions,
    engine_settings_of,
    work_differences,
)
from tierwise.lab.analysis.sweeps import setting_words
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.statistics import (
    FEWEST_REPEATS,
    BoundKind,
    Interval,
    RatioVerdict,
    median_interval,
    ratio_interval,
)
from tierwise.results import RoleIo, RunResult, StrictModel

_EXPECTED = {"Seed"}
"""Conditions that always differ between two studies and do not matter."""
_NOTHING = ["–"]


class ConditionDifference(StrictModel):
    """One condition that differs, with all its values on each side."""

    what: str
    a: list[str]
    b: list[str]


def condition_differences(a: Sequence[RunResult], b: Sequence[RunResult]) -> list[ConditionDifference]:
    """Machine, versions, workload, scale, devices; where both ran one engine, settings and placements."""
    facts = [constant_and_varying_facts(runs) for runs in (a, b)]
    for known, runs in zip(facts, (a, b), strict=True):
        known["Started"] = [min(run.started_at for run in runs).strftime("%Y-%m-%d")]
    devices = [
        {f"Device {name}": [what] for name, what in device_descriptions(runs).items()} for runs in (a, b)
    ]
    differences = [*_between(facts[0], facts[1]), *_between(devices[0], devices[1])]
    engines = [{run.engine.name for run in runs} for runs in (a, b)]
    for engine in sorted(engines[0] & engines[1]):
        settings = [_settings(engine, runs) for runs in (a, b)]
        differences += _between(settings[0], settings[1])
        places = [_places(engine, runs) for runs in (a, b)]
        differences += [found for found in _between(*places) if _NOTHING not in (found.a, found.b)]
    return [difference for difference in differences if difference.what not in _EXPECTED]


def _between(a: dict[str, list[str]], b: dict[str, list[str]]) -> list[ConditionDifference]:
    return [
        ConditionDifference(what=name, a=a.get(name, _NOTHING), b=b.get(name, _NOTHING))
        for name in dict.fromkeys([*a, *b])
        if sorted(a.get(name, _NOTHING)) != sorted(b.get(name, _NOTHING))
    ]


def _places(engine: str, runs: Sequence[RunResult]) -> dict[str, list[str]]:
    placed = {run.placement: run.role_devices for run in runs if run.engine.name == engine}
    return {
        f"{engine}: placement {name}": [", ".join(f"{role}={devices[role]}" for role in sorted(devices))]
        for name, devices in placed.items()
    }


def _settings(engine: str, runs: Sequence[RunResult]) -> dict[str, list[str]]:
    settings = engine_settings_of(engine, runs)
    common = {name: [value] for name, value in settings.common.items()}
    return {f"{engine}: {name}": values for name, values in (common | settings.varied).items()}


Level = Literal["run", "score", "lap", "role"]
_LAP_MEASURES = [
    "elapsed", "cpu", "wait", "log bytes", "logical reads", "physical reads", "pages read", "physical writes",
    "pages written", "bytes written", "bytes read",
]  # fmt: skip
T = TypeVar("T")
Figure = tuple[Kind, Callable[[T], float | None]]
"""Kind of a figure, and how a run, a lap or a role tells it."""
_ROLE_FIGURES: dict[str, Figure[RoleIo]] = {
    "reads": ("count", lambda io: io.reads),
    "writes": ("count", lambda io: io.writes),
    "flushes": ("count", lambda io: io.flushes),
    "bytes read": ("bytes", lambda io: io.read_bytes),
    "bytes written": ("bytes", lambda io: io.write_bytes),
    "busy": ("seconds", lambda io: io.busy_s),
}
_SPEEDS = {
    "elapsed": ("B slower", "B faster"),
    "p99 latency": ("B slower", "B faster"),
    "rate": ("B faster", "B slower"),
}
_MORE_OR_LESS = ("B more", "B less")
_TOTALS: tuple[Kind, ...] = ("seconds", "bytes", "count")
_OF_EACH = {"p99 latency", "mean write size"}
"""Measures of these kinds that are no totals of a run, but of a transaction or a request."""


class ResultsRow(StrictModel):
    """One figure of both sets."""

    level: Level
    name: str
    """Name of the lap or the role; empty for a whole run."""
    what: str
    title: str
    kind: Kind
    a: Interval | None
    b: Interval | None
    ratio: Interval | None
    """B over A; ``None`` if one is absent or not positive, or if a cap leaves the ratio unknown.

    Counters of unfinished work give no ratio; times give one only if one side ended."""

    @property
    def verdict(self) -> str:
        """Whether the two differ, in words; empty if they cannot be compared."""
        if self.ratio is None:
            return ""
        greater, less = _SPEEDS.get(self.what, _MORE_OR_LESS)
        named = {
            RatioVerdict.FASTER: greater,
            RatioVerdict.SLOWER: less,
            RatioVerdict.NO_DIFFERENCE: "no significant difference",
        }
        few = "too few repeats" if self.ratio.n < FEWEST_REPEATS else "left open by the cap"
        return named.get(self.ratio.verdict, few)


def results_rows(
    a: Sequence[RunResult], b: Sequence[RunResult], measure: Measure, *, same_work: bool = True
) -> Iterator[ResultsRow]:
    """The whole run, its scores, then laps, then roles, of valid runs; what only equal work has has no ratio.

    These are totals, of runs as a whole where each did other transactions, and speeds.
    """
    of_patterns = any(run.patterns for run in [*a, *b])
    for row in _every_row(a, b):
        total = row.kind in _TOTALS and row.what not in _OF_EACH
        unequal = not same_work and (total or row.what in _SPEEDS or row.level == "score")
        unequal |= measure == "rate" and total and row.level != "lap"
        # The rate of all patterns together is decided by the fastest one.
        unequal |= of_patterns and row.level == "run" and row.what == "rate"
        yield row.changed(ratio=None) if unequal else row


def _every_row(a: Sequence[RunResult], b: Sequence[RunResult]) -> Iterator[ResultsRow]:
    runs = [[whole_run_part(run) for run in side] for side in (a, b)]
    yield from _rows("run", "", _figures(MEASURES), runs, _capped(runs))
    scores = dict.fromkeys(name for side in runs for part in side for name in part.scores)
    of_scores: dict[str, Figure[MeasuredPart]] = {
        name: ("score", partial(lambda part, name: part.scores.get(name), name=name)) for name in scores
    }
    yield from _rows("score", "", of_scores, runs, (False, False))
    of_patterns: dict[str, Figure[RunResult]] = {
        name: ("rate", partial(_pattern_rate, name=name))
        for name in dict.fromkeys(name for run in [*a, *b] for name in run.patterns)
    }
    yield from _rows("score", "", of_patterns, [a, b], (False, False))
    for key, label in lap_labels([lap for run in [*a, *b] for lap in run.laps]).items():
        ended = ([lap for lap in laps_named(side, key) if lap.status in ("ok", "capped")] for side in (a, b))
        laps = [list(map(lap_part, side)) for side in ended]
        yield from _rows("lap", label, _figures(_LAP_MEASURES), laps, _capped(laps))
    for role in Role:
        ios = [[run.io[role] for run in side if role in run.io] for side in (a, b)]
        moved = {
            what: figure
            for what, figure in _ROLE_FIGURES.items()
            if any(figure[1](io) for side in ios for io in side)
        }
        yield from _rows("role", role.value, moved, ios, _capped(runs))


def _pattern_rate(run: RunResult, name: str) -> float | None:
    return run.patterns[name].rate_per_s if name in run.patterns else None


def _figures(measures: Iterable[str]) -> dict[str, Figure[MeasuredPart]]:
    return {what: (MEASURES[what].kind, MEASURES[what].of) for what in measures}


def _capped(sides: Sequence[Sequence[MeasuredPart]]) -> tuple[bool, bool]:
    """Whether a cap stopped any repeat of A, and of B, before its work was done."""
    a, b = (any(part.capped for part in side) for side in sides)
    return a, b


def _rows(
    level: Level,
    name: str,
    figures: Mapping[str, Figure[T]],
    sides: Sequence[Sequence[T]],
    capped: tuple[bool, bool],
) -> Iterator[ResultsRow]:
    """A row for each figure that is known on any side."""
    for what, (kind, of) in figures.items():
        a, b = ([value for run in side if (value := of(run)) is not None] for side in sides)
        if not a and not b:
            continue
        timed = what == "elapsed"
        known = a and b and min(*a, *b) > 0 and (not any(capped) or (timed and not all(capped)))
        yield ResultsRow(
            level=level,
            name=name,
            what=what,
            title=what.capitalize() if level == "role" else measure_title(what),
            kind=kind,
            a=median_interval(a, capped=timed and capped[0]) if a else None,
            b=median_interval(b, capped=timed and capped[1]) if b else None,
            ratio=ratio_interval(b, a, above_capped=capped[1], below_capped=capped[0]) if known else None,
        )


class PlacementPair(StrictModel):
    """One placement at one setting of A, and its counterpart in B."""

    label: str
    measure: Measure
    """Measure for comparing whole runs."""
    rows: list[ResultsRow]
    other_work: str = ""
    """In what the work of the two differs, so that no time is compared: ``scale 1 against 2``."""

    @property
    def speeds(self) -> dict[str, Interval]:
        """B over A in speed, of each lap by its name and of the whole run by an empty one."""
        return {
            row.name: row.ratio if row.what == "rate" else row.ratio.inverse
            for row in self.rows
            if row.ratio and row.what == (self.measure if row.level == "run" else "elapsed")
        }

    def of(self, level: Level) -> list[ResultsRow]:
        """The figures of one level."""
        return [row for row in self.rows if row.level == level]


class ResultsComparison(StrictModel):
    """Two sets of results, A and B."""

    a: str
    b: str
    runs: tuple[int, int]
    """Valid runs of each."""
    differences: list[ConditionDifference]
    """Conditions that differ."""
    pairs: list[PlacementPair]
    unmatched: list[str]
    """Labels that only one of the two sets has."""

    @property
    def headline(self) -> str:
        """A sentence for each pair about the whole run."""
        return " ".join(_sentence(pair) for pair in self.pairs)


def compare_results(
    a: Sequence[RunResult], b: Sequence[RunResult], names: tuple[str, str]
) -> ResultsComparison:
    """Compare two sets of results.

    Runs are matched by engine, placement and setting. A key part with a single value in each set matches
    even if the two values differ.
    """
    valid = [[run for run in runs if run.status == "ok"] for runs in (a, b)]
    for name, runs, usable in zip(names, (a, b), valid, strict=True):
        if not usable:
            raise TierwiseError(
                f"{name}: none of its {len(runs)} runs is valid", "compare results that have valid runs"
            )
        if any(run.power_cuts or run.device_deaths for run in usable):
            raise TierwiseError(
                f"{name}: results of power cuts or of deaths of devices, whose losses compare does not read",
                "compare their reports: tierwise report DIRECTORY",
            )
    valid = [sorted(runs, key=_place) for runs in valid]
    key = _key_of(*valid)
    groups = [{k: [run for run in runs if key(run) == k] for k in map(key, runs)} for runs in valid]
    common = [k for k in groups[0] if k in groups[1]]
    if not common:
        raise TierwiseError(
            f"{names[0]} and {names[1]} have no placement and setting in common: "
            f"{_several(groups[0])} against {_several(groups[1])}",
            "name sets with the same placements, or with one each",
        )
    alone = [[k for k in groups[side] if k not in groups[1 - side]] for side in (0, 1)]
    many_engines = any(len({run.engine.name for run in runs}) > 1 for runs in valid)
    return ResultsComparison(
        a=names[0],
        b=names[1],
        runs=(len(valid[0]), len(valid[1])),
        differences=condition_differences(*valid),
        pairs=[_pair(groups[0][k], groups[1][k], many_engines) for k in common],
        unmatched=[
            f"only in {name}: {_several(keys)}" for name, keys in zip(names, alone, strict=True) if keys
        ],
    )


def _place(run: RunResult) -> list[str]:
    """By engine, placement and setting, whole numbers by size: runs are in random order."""
    return [part.zfill(_DIGITS) if part.isdigit() else part for part in _NUMBER.split("\0".join(_parts(run)))]


Key = tuple[str, ...]
_NUMBER = re.compile(r"([0-9]+)")
_DIGITS = 20


def _parts(run: RunResult) -> Key:
    setting = ", ".join(setting_words(dict(sorted(run.setting.items()))))
    return (run.engine.name, run.placement, setting)


def _key_of(a: Sequence[RunResult], b: Sequence[RunResult]) -> Callable[[RunResult], Key]:
    """Function that reduces a run's key to the parts with several values on a side."""
    kept = [
        place for place in range(3) if max(len({_parts(run)[place] for run in runs}) for runs in (a, b)) > 1
    ]
    return lambda run: tuple(_parts(run)[place] for place in kept)


def _several(keys: Iterable[Key]) -> str:
    return "; ".join(", ".join(part for part in key if part) for key in keys)


def _pair(a: Sequence[RunResult], b: Sequence[RunResult], many_engines: bool) -> PlacementPair:
    """A pair labelled by placement and setting, and by engine if there are several."""
    both = zip(_parts(a[0]), _parts(b[0]), strict=True)
    (engine, *rest) = [
        name if name == other else f"{name or 'none'} → {other or 'none'}" for name, other in both
    ]
    named = [engine, *rest] if many_engines else rest
    label = ", ".join(part for part in named if part)
    measure = comparison_measure([*a, *b])
    other = work_differences(a, b)
    rows = list(results_rows(a, b, measure, same_work=not other))
    return PlacementPair(label=label, measure=measure, rows=rows, other_work=other)


def _sentence(pair: PlacementPair) -> str:
    speed = pair.speeds.get("")
    because = f", since they did other work ({pair.other_work})" if pair.other_work else ""
    if any(row.level == "score" and row.kind == "rate" for row in pair.rows):
        because = because or ", since each access pattern has a rate of its own"
    text = _gain(speed, pair.measure) if speed else f"whole runs cannot be compared{because}"
    return f"{pair.label}: {text}."


def _gain(speed: Interval, measure: Measure) -> str:
    if speed.n < FEWEST_REPEATS:
        return f"B over A in speed is {numbers.ratio_text(speed.estimate)}, with too few repeats to tell"
    if speed.verdict is RatioVerdict.NO_DIFFERENCE:
        return f"no significant difference (B over A in speed {numbers.ratio_span(speed)})"
    if speed.verdict is RatioVerdict.UNKNOWN:
        return "left open by the cap"
    if measure == "rate":
        times = numbers.ratio_text(speed.estimate)
        return f"B does {times} times the rate of A ({numbers.interval_text(speed)})"
    turned = speed if speed.verdict is RatioVerdict.FASTER else speed.inverse
    least = "at least " if turned.bound is BoundKind.AT_LEAST else ""
    span = f" ({numbers.interval_text(turned)})" if numbers.ratio_span(turned) else ""
    return f"B is {least}{numbers.ratio_text(turned.estimate)} times {speed.verdict.value}{span}"
