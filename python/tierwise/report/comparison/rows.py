"""Figures of two sets of runs, each with its ratio: whole runs, scores, laps, roles. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from tierwise.model.placement import Role
from tierwise.model.statistics import FEWEST_REPEATS, Interval, Verdict, median_interval, ratio_interval
from tierwise.report.study.laps import LapKey, labels_of
from tierwise.report.study.measures import MEASURES, Kind, Part, lap_part, run_part, title_of
from tierwise.results import Record, RoleIo, RunResult

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


class SetRow(Record):
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
            Verdict.FASTER: greater,
            Verdict.SLOWER: less,
            Verdict.NO_DIFFERENCE: "no significant difference",
        }
        few = "too few repeats" if self.ratio.n < FEWEST_REPEATS else "left open by the cap"
        return named.get(self.ratio.verdict, few)


def rows_of(a: Sequence[RunResult], b: Sequence[RunResult]) -> Iterator[SetRow]:
    """The whole run, its scores, then laps, then roles, of valid runs."""
    runs = [[run_part(run) for run in side] for side in (a, b)]
    yield from _rows("run", "", _figures(MEASURES), runs, _capped(runs))
    scores = dict.fromkeys(name for side in runs for part in side for name in part.scores)
    of_scores: dict[str, Figure[Part]] = {name: ("score", partial(_score, name=name)) for name in scores}
    yield from _rows("score", "", of_scores, runs, (False, False))
    for key, label in labels_of([lap for run in [*a, *b] for lap in run.laps]).items():
        laps = [_lap_parts(side, key) for side in (a, b)]
        yield from _rows("lap", label, _figures(_LAP_MEASURES), laps, _capped(laps))
    for role in Role:
        ios = [[run.io[role] for run in side if role in run.io] for side in (a, b)]
        moved = {
            what: figure
            for what, figure in _ROLE_FIGURES.items()
            if any(figure[1](io) for side in ios for io in side)
        }
        yield from _rows("role", role.value, moved, ios, _capped(runs))


def _figures(measures: Iterable[str]) -> dict[str, Figure[Part]]:
    return {what: (MEASURES[what].kind, MEASURES[what].of) for what in measures}


def _score(part: Part, name: str) -> float | None:
    return part.scores.get(name)


def _lap_parts(runs: Sequence[RunResult], key: LapKey) -> list[Part]:
    laps = [lap for run in runs for lap in run.laps if (lap.stream, lap.name) == key]
    return [lap_part(lap) for lap in laps if lap.status in ("ok", "capped")]


def _capped(sides: Sequence[Sequence[Part]]) -> tuple[bool, bool]:
    """Whether a cap stopped any repeat of A, and of B, before its work was done."""
    a, b = (any(part.capped for part in side) for side in sides)
    return a, b


def _rows(
    level: Level,
    name: str,
    figures: Mapping[str, Figure[T]],
    sides: Sequence[Sequence[T]],
    capped: tuple[bool, bool],
) -> Iterator[SetRow]:
    """A row for each figure that is known on any side."""
    for what, (kind, of) in figures.items():
        a, b = ([value for one in side if (value := of(one)) is not None] for side in sides)
        if not a and not b:
            continue
        timed = what == "elapsed"
        known = a and b and min(*a, *b) > 0 and (not any(capped) or (timed and not all(capped)))
        yield SetRow(
            level=level,
            name=name,
            what=what,
            title=what.capitalize() if level == "role" else title_of(what),
            kind=kind,
            a=median_interval(a, capped=timed and capped[0]) if a else None,
            b=median_interval(b, capped=timed and capped[1]) if b else None,
            ratio=ratio_interval(b, a, above_capped=capped[1], below_capped=capped[0]) if known else None,
        )
