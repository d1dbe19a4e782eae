"""Tables of laps, scores and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tierwise.lab.analysis.laps import (
    LapCell,
    LapRow,
)
from tierwise.lab.analysis.measures import title_of
from tierwise.lab.analysis.summary import Summary
from tierwise.lab.analysis.sweeps import SweepLine, SweepPoint, SweepResult
from tierwise.model.statistics import Interval, Verdict
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, estimate, figure, table

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
