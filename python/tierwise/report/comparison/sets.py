"""Two sets of results side by side: differences, their size and their certainty. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tierwise.model.errors import TierwiseError
from tierwise.model.statistics import FEWEST_REPEATS, Bound, Interval, Verdict
from tierwise.report import numbers
from tierwise.report.comparison.conditions import Difference, differences_of
from tierwise.report.comparison.rows import Level, SetRow, rows_of
from tierwise.report.study.rows import Measure, measure_of
from tierwise.report.study.sweeps import setting_words
from tierwise.results import Record, RunResult


class Pair(Record):
    """One placement at one setting of A, and its counterpart in B."""

    label: str
    measure: Measure
    """Measure for comparing whole runs."""
    rows: list[SetRow]

    @property
    def speeds(self) -> dict[str, Interval]:
        """B over A in speed, of each lap by its name and of the whole run by an empty one."""
        return {
            row.name: row.ratio if row.what == "rate" else row.ratio.inverse
            for row in self.rows
            if row.ratio and row.what == (self.measure if row.level == "run" else "elapsed")
        }

    def of(self, level: Level) -> list[SetRow]:
        """The figures of one level."""
        return [row for row in self.rows if row.level == level]


class SetComparison(Record):
    """Two sets of results, A and B."""

    a: str
    b: str
    runs: tuple[int, int]
    """Valid runs of each."""
    differences: list[Difference]
    """Conditions that differ."""
    pairs: list[Pair]
    unmatched: list[str]
    """Labels that only one of the two sets has."""

    @property
    def headline(self) -> str:
        """A sentence for each pair about the whole run."""
        return " ".join(_sentence(pair) for pair in self.pairs)


def compare_sets(a: Sequence[RunResult], b: Sequence[RunResult], names: tuple[str, str]) -> SetComparison:
    """Compare two sets of results.

    Runs are matched by engine, placement and setting. A key part with a single value in each set matches
    even if the two values differ.

    Raises:
        TierwiseError: if a set has no valid run, or nothing of one matches anything of the other.
    """
    valid = [[run for run in runs if run.status == "ok"] for runs in (a, b)]
    for name, runs, found in zip(names, (a, b), valid, strict=True):
        if not found:
            raise TierwiseError(
                f"{name}: none of its {len(runs)} runs is valid", "compare results that have valid runs"
            )
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
    return SetComparison(
        a=names[0],
        b=names[1],
        runs=(len(valid[0]), len(valid[1])),
        differences=differences_of(*valid),
        pairs=[_pair(groups[0][k], groups[1][k], many_engines) for k in common],
        unmatched=[
            f"only in {name}: {_several(keys)}" for name, keys in zip(names, alone, strict=True) if keys
        ],
    )


Key = tuple[str, ...]


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


def _pair(a: Sequence[RunResult], b: Sequence[RunResult], many_engines: bool) -> Pair:
    """A pair labelled by placement and setting, and by engine if there are several."""
    both = zip(_parts(a[0]), _parts(b[0]), strict=True)
    (engine, *rest) = [one if one == other else f"{one or 'none'} → {other or 'none'}" for one, other in both]
    named = [engine, *rest] if many_engines else rest
    label = ", ".join(part for part in named if part)
    return Pair(label=label, measure=measure_of([*a, *b]), rows=list(rows_of(a, b)))


def _sentence(pair: Pair) -> str:
    speed = pair.speeds.get("")
    said = _gain(speed, pair.measure) if speed else "whole runs cannot be compared"
    return f"{pair.label}: {said}."


def _gain(speed: Interval, measure: Measure) -> str:
    if speed.n < FEWEST_REPEATS:
        return f"B over A in speed is {numbers.ratio(speed.estimate)}, with too few repeats to tell"
    if speed.verdict is Verdict.NO_DIFFERENCE:
        return f"no significant difference (B over A in speed {numbers.ratio_span(speed)})"
    if speed.verdict is Verdict.UNKNOWN:
        return "left open by the cap"
    if measure == "rate":
        return f"B does {numbers.ratio(speed.estimate)} times the rate of A ({numbers.interval(speed)})"
    turned = speed if speed.verdict is Verdict.FASTER else speed.inverse
    least = "at least " if turned.bound is Bound.AT_LEAST else ""
    span = f" ({numbers.interval(turned)})" if numbers.ratio_span(turned) else ""
    return f"B is {least}{numbers.ratio(turned.estimate)} times {speed.verdict.value}{span}"
