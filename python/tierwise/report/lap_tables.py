"""Laps and sweeps for a terminal, as renderables of rich."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from tierwise.report import numbers
from tierwise.report.laps import LapCell, LapRow, chief_laps
from tierwise.report.measures import title_of
from tierwise.report.summary import Summary
from tierwise.report.sweeps import Sweep, SweepLine, SweepPoint
from tierwise.statistics import Interval, Verdict

_STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red"}
_SLOWER = " ▲"
"""Behind a figure that got significantly worse with more resources."""
_MOST_LINES = 60


def lap_table(laps: Sequence[LapRow]) -> Table:
    """One row for each of the chief laps under each placement."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("lap", "placement"):
        table.add_column(name, overflow="fold")
    for name in ("elapsed", "times faster", "checksum", "repeats"):
        table.add_column(name, justify="right", no_wrap=True, vertical="top")
    for lap in chief_laps(laps):
        for number, cell in enumerate(lap.cells):
            table.add_row(
                Text("" if number else lap.label),
                Text(cell.placement),
                estimate(cell.elapsed, numbers.seconds, numbers.seconds_span),
                speedup_text(cell.speedup, cell.verdict),
                Text(checksum(cell)),
                Text(repeats(cell)),
            )
    return table


def score_table(summaries: Sequence[Summary]) -> Table | None:
    """The scores of each placement; ``None`` if the workload has none."""
    names = list(dict.fromkeys(name for one in summaries for name in one.scores))
    if not names:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("placement", overflow="fold")
    for name in names:
        table.add_column(
            title_of(name).lower().replace(" ", "\n"), justify="right", no_wrap=True, vertical="top"
        )
    for one in summaries:
        cells = [estimate(one.scores.get(name), numbers.significant, numbers.number_span) for name in names]
        table.add_row(Text(one.placement), *cells)
    return table


def checksum(cell: LapCell) -> str:
    """The sums that a lap came to; where they are what they must be, one with a tick."""
    if cell.expected is not None and cell.checksums == [cell.expected]:
        return f"{cell.expected} ✓"
    return ", ".join(map(str, cell.checksums)) or numbers.NONE


def repeats(cell: LapCell) -> str:
    """How the repeats of a lap ended."""
    counts = [(cell.ok, "ok"), (cell.capped, "capped"), (cell.failed, "failed")]
    return ", ".join(f"{number} {how}" for number, how in counts if number)


def sweep_parts(sweep: Sweep) -> list[Table | Text]:
    """Every line over the values of the setting, then what got slower with more.

    Of very many laps, only those that did.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(sweep.plain_name, overflow="fold")
    for value in sweep.values:
        table.add_column(value, justify="right", no_wrap=True)
    many = len(sweep.lines) > _MOST_LINES
    for line in sweep.lines:
        if many and line.lap and not line.anomalies:
            continue
        table.add_row(line.label, *(_point(line, point) for point in line.points))
    title = Text(f"\n{sweep.label}", style="bold")
    return [title, table, *(Text(f"Anomaly: {one}", style="yellow") for one in sweep.anomalies)]


def level_text(line: SweepLine, point: SweepPoint) -> str:
    """The figure of one point, in the unit of its line."""
    if point.level is None:
        return numbers.NONE
    figure = numbers.of_kind("seconds" if line.is_time else "score")
    return numbers.signed(point.level, figure(point.level.estimate))


def estimate(
    interval: Interval | None, value: Callable[[float], str], span: Callable[[Interval], str]
) -> Text:
    """An estimate with its interval below it."""
    if interval is None:
        return Text(numbers.NONE)
    ends = span(interval)
    shown = numbers.signed(interval, value(interval.estimate))
    return Text.assemble(shown, (f"\n{ends}" if ends else "", "dim"))


def speedup_text(speedup: Interval | None, verdict: Verdict) -> Text:
    """A ratio to the baseline with its interval, in the colour of what it proves."""
    if speedup is None:
        return Text(numbers.NONE)
    text = estimate(speedup, numbers.ratio, numbers.ratio_span)
    if verdict is Verdict.NO_DIFFERENCE:
        text.append("\nno difference", style="yellow")
    text.stylize(_STYLES.get(verdict, ""))
    return text


def _point(line: SweepLine, point: SweepPoint) -> Text:
    style = "yellow" if point.slower_than else ""
    return Text(level_text(line, point) + (_SLOWER if point.slower_than else ""), style=style)
