"""Sweeps of a study's settings: every placement, lap and score over them, and anomalies. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tierwise.lab.analysis.lap_comparison import lap_labels, lap_times_of
from tierwise.lab.analysis.placement_rows import (
    RepeatTimes,
    Runs,
    comparison_measure,
    host_block_of,
    seconds_per_work,
    speedup_of,
)
from tierwise.lab.analysis.study_conditions import work_differences
from tierwise.model import numbers
from tierwise.model.names import group_by_key
from tierwise.model.statistics import Interval, RatioVerdict, median_interval
from tierwise.results import RunResult, StrictModel, StudyInfo

_NO_RESOURCES = ("clients", "constants.", "variant")
"""Sweeps of load, work or kind, not of resources: higher values may well take longer."""


class SweepPoint(StrictModel):
    """One value of the setting. ``level`` is a time in seconds, a rate, or a score."""

    value: str
    level: Interval | None
    ratio: Interval | None
    """Speed-up over the least value; ``None`` there, and where other work was done."""
    slower_than: str | None
    """The value with fewer resources at which this was significantly faster: an anomaly."""


class SweepLine(StrictModel):
    """One placement over the swept setting: a whole run, one lap of it, or one of its scores."""

    placement: str
    lap: str | None
    score: str | None
    is_time: bool
    """Whether levels are seconds, where less is better; otherwise rates or scores."""
    points: list[SweepPoint]

    @property
    def label(self) -> str:
        """Lap or score, and placement."""
        return ", ".join(part for part in (self.lap or self.score, self.placement) if part)

    @property
    def anomalies(self) -> list[SweepPoint]:
        """Points that are significantly slower than one with fewer resources."""
        return [point for point in self.points if point.slower_than is not None]


class SweepResult(StrictModel):
    """One setting of one engine swept, all else alike."""

    engine: str
    name: str
    others: dict[str, str]
    """The other swept settings, constant here."""
    values: list[str]
    """Values, least resources first."""
    judged: bool
    """Whether it sweeps a resource, so that slower with more is an anomaly."""
    lines: list[SweepLine]
    anomalies: list[str]
    """One sentence per anomaly: significantly slower with more resources."""

    @property
    def plain_name(self) -> str:
        """The setting's name for people."""
        return setting_name(self.name)

    @property
    def label(self) -> str:
        """The swept setting and its context."""
        return ", ".join([f"{setting_name(self.name)} swept", self.engine, *setting_words(self.others)])


Costs = Mapping[str, RepeatTimes]
"""Value of the setting -> seconds of the repeats there, per run, lap, transaction or unit of a score."""


def setting_name(name: str) -> str:
    """The name of a setting for people: a constant of the workload without the prefix."""
    return name.removeprefix("constants.")


def setting_words(setting: Mapping[str, str]) -> list[str]:
    """A point of a sweep in words."""
    return [f"{setting_name(name)} {value}" for name, value in setting.items()]


def sweeps_of(runs: Sequence[RunResult], info: StudyInfo) -> list[SweepResult]:
    """Every setting with runs at two values or more, for each engine and each set of other settings."""
    valid = [run for run in runs if run.status == "ok"]
    names = list(dict.fromkeys([*info.sweep, *(name for run in valid for name in run.setting)]))
    return [sweep for name in names for sweep in _sweeps(name, valid, info)]


def _sweeps(name: str, runs: Sequence[RunResult], info: StudyInfo) -> Iterator[SweepResult]:
    groups = group_by_key(
        ((run.engine.name, tuple(sorted((k, v) for k, v in run.setting.items() if k != name))), run)
        for run in runs
        if name in run.setting
    )
    for (engine, others), group in sorted(groups.items()):
        seen = {run.setting[name] for run in group}
        declared = [*info.sweep.get(name, []), *sorted(seen)]
        values = [value for value in dict.fromkeys(declared) if value in seen]
        if len(values) > 1:
            yield _sweep(engine, name, dict(others), values, group, info)


def _sweep(
    engine: str,
    name: str,
    others: dict[str, str],
    values: list[str],
    runs: Sequence[RunResult],
    info: StudyInfo,
) -> SweepResult:
    judged = not name.startswith(_NO_RESOURCES)
    order = dict.fromkeys([*info.placements, *sorted({run.placement for run in runs})])
    by_placement = {
        placement: {
            value: [run for run in runs if run.setting[name] == value and run.placement == placement]
            for value in values
        }
        for placement in order
    }
    lines = [line for name, own in by_placement.items() for line in _lines(name, own, judged, info.seed)]
    return SweepResult(
        engine=engine,
        name=name,
        others=others,
        values=values,
        judged=judged,
        lines=lines,
        anomalies=[_sentence(name, line, point) for line in lines for point in line.anomalies],
    )


def _lines(placement: str, by_value: Runs, judged: bool, seed: int) -> Iterator[SweepLine]:
    """The whole run, then each score, then each lap."""
    runs = [run for group in by_value.values() for run in group]
    if not runs:
        return

    def line(
        of: Callable[[Sequence[RunResult]], RepeatTimes],
        is_time: bool = True,
        lap: str | None = None,
        score: str | None = None,
    ) -> SweepLine:
        costs = {value: of(group) for value, group in by_value.items()}
        points = [_point(value, costs, is_time, judged, seed, same_work=same_work[value]) for value in costs]
        return SweepLine(placement=placement, lap=lap, score=score, is_time=is_time, points=points)

    first = next(iter(by_value.values()))
    same_work = {value: not work_differences(first, group) for value, group in by_value.items()}
    by_time = comparison_measure(runs) == "elapsed" or any(run.laps for run in runs)
    yield line(lambda group: seconds_per_work(group, "elapsed" if by_time else "rate"), by_time)
    for score in dict.fromkeys(name for run in runs for name in run.scores):
        yield line(partial(_score_costs, score=score), False, score=score)
    for key, label in lap_labels([lap for run in runs for lap in run.laps]).items():
        yield line(partial(lap_times_of, keys=[key]), lap=label)


def _score_costs(runs: Sequence[RunResult], score: str) -> RepeatTimes:
    scored = [run for run in runs if run.scores.get(score, 0) > 0]
    return RepeatTimes([1 / run.scores[score] for run in scored], False, list(map(host_block_of, scored)))


def _point(
    value: str, costs: Costs, is_time: bool, judged: bool, seed: int, *, same_work: bool
) -> SweepPoint:
    """Compare with the least and the preceding value; more pairs would yield more chance findings."""
    here, order = costs[value], list(costs)
    before = order[: order.index(value)]
    ratios = {
        other: ratio
        for other in dict.fromkeys([*before[:1], *before[-1:]])
        if (ratio := speedup_of(here, costs[other], seed)) is not None
    }
    slower = {other: ratio for other, ratio in ratios.items() if ratio.verdict is RatioVerdict.SLOWER}
    worst = min(slower, key=lambda other: slower[other].estimate, default=None) if judged else None
    levels = here.values_s if is_time else [1 / cost_s for cost_s in here.values_s]
    return SweepPoint(
        value=value,
        level=median_interval(levels, seed=seed, capped=is_time and here.capped) if levels else None,
        ratio=ratios.get(order[0]) if same_work else None,
        slower_than=worst,
    )


def _sentence(name: str, line: SweepLine, point: SweepPoint) -> str:
    what = f"lap {line.lap}" if line.lap else f"score {line.score}" if line.score else "the whole run"
    other = next(p for p in line.points if p.value == point.slower_than)
    figure = numbers.seconds_text if line.is_time else numbers.formatter_of("score")
    here, there = (figure(p.level.estimate) if p.level else numbers.NONE for p in (point, other))
    return (
        f"{what} on {line.placement} is significantly {'slower' if line.is_time else 'worse'} "
        f"with {setting_name(name)} {point.value} ({here}) than with {other.value} ({there})."
    )
