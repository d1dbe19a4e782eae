"""Tables of laps, scores and sweeps, and sentences on which placement helps which lap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tierwise.model.statistics import FEWEST_REPEATS, Bound, Interval, Verdict
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table
from tierwise.report.study.laps import (
    LapCell,
    LapRow,
)
from tierwise.report.study.measures import title_of
from tierwise.report.study.moves import join
from tierwise.report.study.summary import Summary
from tierwise.report.study.sweeps import SweepLine, SweepPoint, SweepResult

LAP_COLUMNS = (
    "elapsed", "times faster", "of slowest", "checksum", "resident before", "CPU", "log wait", "repeats",
)  # fmt: skip
_TONES = {Verdict.FASTER: Tone.BETTER, Verdict.SLOWER: Tone.WORSE}
_SLOWER = " ▲"
"""Mark after a figure that got significantly worse with more resources."""
_MOST_LINES = 60


def lap_table(laps: Sequence[LapRow], colours: Mapping[str, str]) -> Table:
    """One row for each lap under each placement."""
    laps_table = table(["lap", "placement"], LAP_COLUMNS)
    for lap in laps:
        marks = [Text(mark, Tone.QUIET) for mark in _marks(lap)]
        for cell in lap.cells:
            elapsed_s = cell.elapsed.estimate if cell.elapsed else None
            first = (Text("first move", Tone.BETTER),) if cell.placement == lap.first else ()
            problems = [Text(problem, Tone.WARNING) for problem in cell.problems]
            laps_table.add(
                Cell(lap.label, below=tuple(marks)),
                Cell(cell.placement, below=first, colour=colours[cell.placement]),
                estimate(cell.elapsed, numbers.seconds),
                speedup(cell.speedup, cell.verdict),
                figure(elapsed_s / lap.slowest_s if elapsed_s and lap.slowest_s else None, numbers.percent),
                checksum(cell),
                figure(cell.resident_share, numbers.percent),
                figure(cell.medians.get("cpu"), numbers.seconds),
                figure(cell.medians.get("log wait share"), numbers.percent),
                Cell(repeats(cell), below=tuple(problems)),
            )
    return laps_table


def _marks(lap: LapRow) -> list[str]:
    return ["cold"] * lap.cold + ["not part of the whole time"] * (not lap.timed)


def score_table(summaries: Sequence[Summary], colours: Mapping[str, str]) -> Table | None:
    """The scores of each placement; ``None`` if the workload has none."""
    names = list(dict.fromkeys(name for summary in summaries for name in summary.scores))
    if not names:
        return None
    scores = table(["placement"], [title_of(name).lower().replace(" ", "\n") for name in names])
    for summary in summaries:
        name = Cell(summary.placement, colour=colours[summary.placement])
        scores.add(name, *(estimate(summary.scores.get(name), numbers.significant) for name in names))
    return scores


def checksum(cell: LapCell) -> str:
    """The checksums of a lap; if all are as expected, one with a tick."""
    if cell.expected is not None and cell.checksums == [cell.expected]:
        return f"{cell.expected} ✓"
    return ", ".join(map(str, cell.checksums)) or numbers.NONE


def repeats(cell: LapCell) -> str:
    """Outcomes of the repeats of a lap."""
    counts = [(cell.ok, "ok"), (cell.capped, "capped"), (cell.failed, "failed")]
    return ", ".join(f"{number} {how}" for number, how in counts if number)


def sweep_blocks(sweep: SweepResult, title: str = "") -> list[Block]:
    """Every line over the values of the setting, then the points slower with more resources.

    If there are very many laps, only those with such points.
    """
    sweep_table = table([sweep.plain_name], sweep.values, title)
    many = len(sweep.lines) > _MOST_LINES
    for line in sweep.lines:
        if many and line.lap and not line.anomalies:
            continue
        sweep_table.add(line.label, *(_point(line, point) for point in line.points))
    return [sweep_table, *(Text(f"Anomaly: {anomaly}", Tone.WARNING) for anomaly in sweep.anomalies)]


def _level_text(line: SweepLine, point: SweepPoint) -> str:
    """The figure of one point, in the unit of its line."""
    if point.level is None:
        return numbers.NONE
    shown = numbers.of_kind("seconds" if line.is_time else "score")
    return numbers.signed(point.level, shown(point.level.estimate))


def speedup(interval: Interval | None, verdict: Verdict) -> Cell:
    """A ratio to the baseline with its interval, in the tone of what it proves."""
    if interval is None:
        return Cell(numbers.NONE)
    cell = replace(estimate(interval, numbers.ratio), tone=_TONES.get(verdict, Tone.PLAIN))
    if verdict is not Verdict.NO_DIFFERENCE:
        return cell
    return replace(cell, below=(*cell.below, Text("no difference", Tone.WARNING)))


def _point(line: SweepLine, point: SweepPoint) -> Cell:
    slower = point.slower_than is not None
    value = point.level.estimate if point.level else None
    tone = Tone.WARNING if slower else Tone.PLAIN
    than = (Text(f"worse than {point.slower_than}", Tone.QUIET),) if slower else ()
    return Cell(_level_text(line, point) + _SLOWER * slower, tone, below=than, value=value)


_MOST_NAMED = 4
Said = tuple[LapRow, LapCell]


def lap_sentences(laps: Sequence[LapRow], placements: Sequence[str], baseline: str) -> list[str]:
    """One sentence per placement, then one on the first placement to adopt for each lap."""
    others = [name for name in placements if name != baseline]
    sentences = [_of_placement(name, laps, baseline) for name in others]
    firsts = _firsts(laps) if len(others) > 1 else ""
    return [sentence for sentence in [*sentences, firsts, _stopped(laps)] if sentence]


def _of_placement(placement: str, laps: Sequence[LapRow], baseline: str) -> str:
    cells = [(lap, cell) for lap in laps if (cell := lap.cell(placement)) and lap.cell(baseline)]
    if not cells:
        return ""
    few = [cell for cell in cells if cell[1].speedup and cell[1].speedup.n < FEWEST_REPEATS]
    decided = [cell for cell in cells if cell not in few]
    by_verdict = {verdict: [cell for cell in decided if cell[1].verdict is verdict] for verdict in Verdict}
    parts = [
        _changed(by_verdict[Verdict.FASTER], len(cells), "faster"),
        _changed(by_verdict[Verdict.SLOWER], len(cells), "slower"),
        _listed("no significant difference for", by_verdict[Verdict.NO_DIFFERENCE]),
        _undecided(few),
        _listed("not decided for", by_verdict[Verdict.UNKNOWN]),
    ]
    return f"{placement}: {'; '.join(part for part in parts if part)}."


def _changed(cells: Sequence[Said], of: int, how: str) -> str:
    turned = {
        lap.label: cell.speedup if how == "faster" else cell.speedup.inverse
        for lap, cell in cells
        if cell.speedup
    }
    ordered = sorted(turned.items(), key=lambda item: -item[1].estimate)
    if not ordered:
        return ""
    if len(ordered) <= _MOST_NAMED:
        return join([f"{name} {_times(ratio)}" for name, ratio in ordered]) + f" times {how}"
    (most, greatest), (least, smallest) = ordered[0], ordered[-1]
    return (
        f"{len(ordered)} of {of} laps {how}, most {most} ({_times(greatest)} times), "
        f"least {least} ({_times(smallest)} times)"
    )


def _times(ratio: Interval) -> str:
    span = numbers.ratio_span(ratio)
    at_least = "at least " if ratio.bound is Bound.AT_LEAST else ""
    return f"{at_least}{numbers.ratio(ratio.estimate)}" + (f" ({span})" if span else "")


def _undecided(cells: Sequence[Said]) -> str:
    """Laps with too few repeats for a verdict: their ratios, stated as inconclusive."""
    if len(cells) > _MOST_NAMED:
        return f"{len(cells)} laps were run too few times to tell"
    ratios = [f"{lap.label} {numbers.ratio(cell.speedup.estimate)}" for lap, cell in cells if cell.speedup]
    return f"run too few times to tell (ratios: {', '.join(ratios)})" if ratios else ""


def _listed(what: str, cells: Sequence[Said]) -> str:
    return f"{what} {_some([lap.label for lap, _ in cells])}" if cells else ""


def _some(names: Sequence[str]) -> str:
    return join(names) if len(names) <= _MOST_NAMED else f"{len(names)} laps"


def _firsts(laps: Sequence[LapRow]) -> str:
    """Laps by the placement that saves most per moved role."""
    groups = _by_placement((lap.first, lap) for lap in laps if lap.first)
    listed = "; ".join(f"{placement} for {_some(names)}" for placement, names in groups.items())
    return f"Begin with {listed}." if groups else ""


def _stopped(laps: Sequence[LapRow]) -> str:
    """Laps that a cap stopped: only a lower bound of their time is known."""
    groups = _by_placement((cell.placement, lap) for lap in laps for cell in lap.cells if cell.stopped)
    if not groups:
        return ""
    listed = "; ".join(f"{join(names)} on {placement}" for placement, names in groups.items())
    return f"Stopped at the cap in at least one repeat, so that only a lower bound is known: {listed}."


def _by_placement(rows: Iterable[tuple[str, LapRow]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for placement, lap in rows:
        groups.setdefault(placement, []).append(lap.label)
    return groups
