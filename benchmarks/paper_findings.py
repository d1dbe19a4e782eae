"""Findings of papers as tests of direction, judged by intervals, for runs and predictions; as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from tierwise.lab.analysis.lap_comparison import lap_times_of
from tierwise.lab.analysis.placement_rows import RepeatTimes, seconds_per_work
from tierwise.model import numbers
from tierwise.model.statistics import FEWEST_REPEATS, BoundKind, Interval, ratio_interval, statistic_interval
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Estimate
from tierwise.results import RunResult, StrictModel

Runs = Mapping[str, Sequence[RunResult]]
"""Study -> its runs."""


class Outcome(StrEnum):
    """Outcome of a check."""

    PASS = "PASS"
    FAIL = "FAIL"
    OPEN = "not decided"


class Point(StrictModel):
    """Source of a time: a whole run under a placement, or one of its laps."""

    study: str
    placement: str
    setting: dict[str, str] = {}
    """Part of a sweep's point suffices; ``least`` and ``most`` are the extreme values that ran."""
    lap: str | None = None


class Check(StrictModel):
    """One comparison of times, with two ``points``; ``most`` has three (slow, part, all), ``more`` has four.

    - ``faster``: the interval of first over second lies above 1
    - ``alike``: that interval lies within ``1 / bound`` and ``bound``
    - ``most``: the interval of the second's share of what the third gains over the first lies above 0.5
    - ``more``: the gain of the second over the first is greater than that of the fourth over the third
    """

    what: str
    kind: Literal["faster", "alike", "most", "more"]
    points: list[Point]
    bound: float = 1.25


class Finding(StrictModel):
    """A finding of a paper, and its checks; our runs agree if all of them pass."""

    name: str
    paper: str
    """The paper's figures and their source."""
    checks: list[Check]
    why_not: str = ""
    """Known reason for a disagreement."""


class Judged(StrictModel):
    """A check and its outcome."""

    check: Check
    outcome: Outcome
    ratio: Interval | None
    problem: str = ""
    """Why the check is not decided."""

    @property
    def figure(self) -> str:
        """The ratio, or the share for ``most``, with its interval."""
        if self.ratio is None:
            return self.problem
        share = self.check.kind == "most"
        ratio = self.ratio.estimate
        value = numbers.percent_text(ratio) if share else f"{numbers.ratio_text(ratio)}×"
        span = numbers.percent_span(self.ratio) if share else numbers.ratio_span(self.ratio)
        return numbers.with_bound_sign(self.ratio, value) + (f" ({span})" if span else "")


class JudgedFinding(StrictModel):
    """A finding and its judged checks."""

    finding: Finding
    judged: list[Judged]

    @property
    def outcome(self) -> Outcome:
        """PASS if every check passed, FAIL if any failed."""
        outcomes = {check.outcome for check in self.judged}
        return next(
            (outcome for outcome in (Outcome.FAIL, Outcome.OPEN) if outcome in outcomes), Outcome.PASS
        )


def judge(finding: Finding, runs: Runs) -> JudgedFinding:
    """Apply every check of a finding to the runs."""
    return JudgedFinding(finding=finding, judged=[_judge(check, runs) for check in finding.checks])


def _judge(check: Check, runs: Runs) -> Judged:
    times = [_times(point, runs) for point in check.points]
    problem = next((p for p in map(_problem, check.points, times) if p), "") or _stopped(check, times)
    if problem:
        return Judged(check=check, outcome=Outcome.OPEN, ratio=None, problem=problem)
    ratio, passes = _KINDS[check.kind](check, times)
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        return Judged(check=check, outcome=Outcome.OPEN, ratio=ratio, problem="too few repeats")
    if ratio.bound is BoundKind.AT_LEAST and not passes(low, high):
        return Judged(check=check, outcome=Outcome.OPEN, ratio=ratio, problem="left open by the cap")
    return Judged(check=check, outcome=Outcome.PASS if passes(low, high) else Outcome.FAIL, ratio=ratio)


def _times(point: Point, runs: Runs) -> RepeatTimes:
    study = runs.get(point.study, [])
    setting = {name: _value(name, value, study) for name, value in point.setting.items()}
    here = [
        run
        for run in study
        if run.status == "ok" and run.placement == point.placement and setting.items() <= run.setting.items()
    ]
    if point.lap is None:
        return seconds_per_work(here, "elapsed")
    keys = sorted({(lap.stream, lap.name) for run in here for lap in run.laps if lap.name == point.lap})
    return lap_times_of(here, keys)


def _value(name: str, value: str, runs: Sequence[RunResult]) -> str:
    ends = {"least": min, "most": max}
    seen = {run.setting[name] for run in runs if name in run.setting}
    if value not in ends or not seen:
        return value
    return str(ends[value](seen, key=lambda text: parse_size_bytes(text, name)))


def _problem(point: Point, times: RepeatTimes) -> str:
    if len(times.values_s) >= FEWEST_REPEATS:
        return ""
    what = f"{point.study}, {point.placement}" + (f", {point.lap}" if point.lap else "")
    return f"{what}: {len(times.values_s)} valid repeats of {FEWEST_REPEATS}"


def _stopped(check: Check, times: Sequence[RepeatTimes]) -> str:
    """Only the slower side of ``faster`` may have been stopped at the cap."""
    may = 1 if check.kind == "faster" else 0
    return "stopped at the cap" if any(time.capped for time in times[may:]) else ""


Passes = Callable[[float, float], bool]


def _faster(_: Check, times: Sequence[RepeatTimes]) -> tuple[Interval, Passes]:
    slow, fast = times
    ratio = ratio_interval(slow.values_s, fast.values_s, above_capped=slow.capped)
    return ratio, lambda low, _: low > 1


def _alike(check: Check, times: Sequence[RepeatTimes]) -> tuple[Interval, Passes]:
    ratio = ratio_interval(times[0].values_s, times[1].values_s)
    return ratio, lambda low, high: low >= 1 / check.bound and high <= check.bound


def _most(_: Check, times: Sequence[RepeatTimes]) -> tuple[Interval, Passes]:
    share = statistic_interval(
        [time.values_s for time in times],
        lambda medians: (medians[0] - medians[1]) / (medians[0] - medians[2]),
    )
    return share, lambda low, _: low > 0.5


def _more(_: Check, times: Sequence[RepeatTimes]) -> tuple[Interval, Passes]:
    ratio = statistic_interval(
        [time.values_s for time in times], lambda medians: medians[0] / medians[1] / (medians[2] / medians[3])
    )
    return ratio, lambda low, _: low > 1


_KINDS: dict[str, Callable[[Check, Sequence[RepeatTimes]], tuple[Interval, Passes]]] = {
    "faster": _faster,
    "alike": _alike,
    "most": _most,
    "more": _more,
}


class PredictedPaper(StrictModel):
    """One experiment of a paper, predicted from a recording made here."""

    experiment: str
    finding: str = ""
    """Name of the corresponding finding, if any."""
    what: str
    """The ratio, in words."""
    paper: str
    machine: str
    """Source of the machine's factors."""
    ratio: Estimate | None
    refused: str = ""
    """Why there is no ratio."""
    reproduction_error: float | None = None
    """Replayed rate of the recorded run over the recorded one, less 1."""
    warnings: list[str]
    why: str = ""
    """Known reason for a deviation from the paper."""

    @property
    def figure(self) -> str:
        """The ratio with its interval, or why there is none."""
        if self.ratio is None:
            return f"refused: {self.refused}"
        ends = numbers.range_text(numbers.ratio_text(self.ratio.low), numbers.ratio_text(self.ratio.high))
        return f"{numbers.ratio_text(self.ratio.value)}× ({ends})"


CRITERIA = """A check passes when the 95 % bootstrap interval of its ratio of medians excludes 1 in the right
direction; *alike* when the interval lies within the stated bound; *most* when the interval of the recovered
share of the gain lies above one half. Each placement needs three valid repeats or more. Size is not tested,
only direction."""


def to_markdown(verdicts: Sequence[JudgedFinding], predicted: Sequence[PredictedPaper] = ()) -> str:
    """The table of findings: the paper, ours, what was predicted, whether they agree, and why not."""
    lines = [
        CRITERIA,
        "",
        "| finding | paper | ours | predicted for the paper's machine | agree? | why not |",
        "|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        finding = verdict.finding
        ours = "; ".join(f"{one.check.what}: {one.figure} {one.outcome}" for one in verdict.judged)
        why = "" if verdict.outcome is Outcome.PASS else finding.why_not or "not known yet"
        cells = (finding.name, finding.paper, ours, cell_of(finding.name, predicted), _AGREE[verdict.outcome])
        lines.append(f"| {' | '.join(cells)} | {why} |")
    passed = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
    return "\n".join([*lines, "", f"{passed} of {len(verdicts)} findings agree.", ""])


_AGREE = {Outcome.PASS: "yes", Outcome.FAIL: "**no**", Outcome.OPEN: "not decided"}


def cell_of(finding: str, predicted: Sequence[PredictedPaper]) -> str:
    """The prediction for a finding, or a dash."""
    return "; ".join(f"{one.what}: {one.figure}" for one in predicted if one.finding == finding) or "–"


def predicted_to_markdown(predicted: Sequence[PredictedPaper]) -> str:
    """The table of all predictions, with the deviations discussed."""
    lines = [
        "| experiment | ratio | paper | predicted for the paper's machine | replayed run off by | "
        "why it deviates |",
        "|---|---|---|---|---|---|",
    ]
    for one in predicted:
        error = numbers.NONE if one.reproduction_error is None else f"{one.reproduction_error:+.1%}"
        lines.append(f"| {one.experiment} | {one.what} | {one.paper} | {one.figure} | {error} | {one.why} |")
    machines = dict.fromkeys(f"- {one.experiment}: {one.machine}" for one in predicted)
    warnings = dict.fromkeys(f"- {warning}" for one in predicted for warning in one.warnings)
    return "\n".join([*lines, "", "Machines:", "", *machines, "", "Warnings:", "", *warnings, ""])
