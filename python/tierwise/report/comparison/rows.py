"""Figures of two sets of runs, each with its ratio: whole runs, scores, laps, roles. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tierwise.model.roles import Role
from tierwise.model.statistics import FEWEST_REPEATS, Interval, Verdict, median_interval, ratio_interval
from tierwise.report.study.laps import LapKey, labels_of
from tierwise.report.study.measures import MEASURES, Kind, Part, kind_of, lap_part, run_part, title_of
from tierwise.results import LapResult, Record, RoleIo, RunResult

Level = Literal["run", "score", "lap", "role"]
_LAP_MEASURES = [
    "elapsed", "cpu", "wait", "log bytes", "logical reads", "physical reads", "pages read", "physical writes",
    "pages written", "bytes written", "bytes read",
]  # fmt: skip
_ROLE_FIGURES: dict[str, tuple[Kind, Callable[[RoleIo], float | None]]] = {
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
    parts = [run_part(run) for run in a], [run_part(run) for run in b]
    yield from _measured("run", "", list(MEASURES), *parts)
    for score in dict.fromkeys(name for side in parts for part in side for name in part.scores):
        of_score = [[part.scores[score] for part in side if score in part.scores] for side in parts]
        yield _row("score", "", score, "score", Samples(of_score[0], of_score[1]))
    yield from _lap_rows(*([lap for run in runs for lap in run.laps] for runs in (a, b)))
    capped = any(part.capped for part in parts[0]), any(part.capped for part in parts[1])
    for role in Role:
        ios = [[run.io[role] for run in runs if role in run.io] for runs in (a, b)]
        yield from _role_rows(role, ios[0], ios[1], capped)


def _lap_rows(a: Sequence[LapResult], b: Sequence[LapResult]) -> Iterator[SetRow]:
    def parts(laps: Sequence[LapResult], key: LapKey) -> list[Part]:
        return [
            lap_part(lap) for lap in laps if (lap.stream, lap.name) == key and lap.status in ("ok", "capped")
        ]

    for key, label in labels_of([*a, *b]).items():
        yield from _measured("lap", label, _LAP_MEASURES, parts(a, key), parts(b, key))


def _role_rows(
    role: Role, a: Sequence[RoleIo], b: Sequence[RoleIo], capped: tuple[bool, bool]
) -> Iterator[SetRow]:
    for name, (kind, of) in _ROLE_FIGURES.items():
        known = [[value for io in side if (value := of(io)) is not None] for side in (a, b)]
        if any(any(side) for side in known):
            yield _row("role", role.value, name, kind, Samples(known[0], known[1], *capped))


@dataclass(frozen=True)
class Samples:
    """Repeats of both sides, and whether a cap stopped any repeat of a side before its work was done."""

    a: Sequence[float]
    b: Sequence[float]
    a_capped: bool = False
    b_capped: bool = False


def _measured(
    level: Level, name: str, measures: Sequence[str], a: Sequence[Part], b: Sequence[Part]
) -> Iterator[SetRow]:
    for what in measures:
        of = MEASURES[what].of
        values = [[value for part in side if (value := of(part)) is not None] for side in (a, b)]
        capped = [any(part.capped for part in side) for side in (a, b)]
        if any(values):
            yield _row(level, name, what, kind_of(what), Samples(values[0], values[1], capped[0], capped[1]))


def _row(level: Level, name: str, what: str, kind: Kind, found: Samples) -> SetRow:
    a, b = found.a, found.b
    stopped, timed = found.a_capped + found.b_capped, what == "elapsed"
    known = bool(a) and bool(b) and min(*a, *b) > 0 and (stopped == 0 or (timed and stopped == 1))
    return SetRow(
        level=level,
        name=name,
        what=what,
        title=what.capitalize() if level == "role" else title_of(what),
        kind=kind,
        a=median_interval(a, capped=timed and found.a_capped) if a else None,
        b=median_interval(b, capped=timed and found.b_capped) if b else None,
        ratio=ratio_interval(b, a, above_capped=found.b_capped, below_capped=found.a_capped)
        if known
        else None,
    )
