"""The answer to "would I lose data?": the frontier of rate against loss as a table and a chart."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.report import numbers
from tierwise.report.charts.frontier import described_frontier, frontier_chart
from tierwise.report.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Section,
    Table,
    Text,
    Tone,
    estimate,
    figure,
    table,
)
from tierwise.report.durability.frontier import CutRow
from tierwise.report.durability.words import headline, lost_age, sentence
from tierwise.report.palette import placement_names

CAPTION = (
    "Up is more commits a second, left is less loss. A ring is on the frontier: no other point is as fast "
    "and loses as little. A triangle lost its whole load, so that the true age is greater."
)


def frontier_blocks(rows: Sequence[CutRow], baseline: str, *, charts: bool = True) -> list[Block]:
    """The headline, then for each engine its table, its chart and its sentences."""
    blocks: list[Block] = [Text(headline(list(rows)), Tone.WARNING if _broken(rows) else Tone.HEADLINE)]
    for engine in dict.fromkeys(row.engine for row in rows):
        own = [row for row in rows if row.engine == engine]
        drawn = [_chart(engine, own, baseline)] if charts else []
        said = Bullets([sentence(row) for row in own])
        damage = [
            Text(f"{row.durability} on {row.placement}: {row.damage}", Tone.QUIET)
            for row in own
            if row.damage
        ]
        early = [
            Text(problem, Tone.WARNING) for problem in dict.fromkeys(p for row in own for p in row.problems)
        ]
        blocks.append(
            Section(
                engine, [*drawn, frontier_table(own, baseline), said, *damage, *early], id=f"cuts-{engine}"
            )
        )
    return blocks


def frontier_table(rows: Sequence[CutRow], baseline: str) -> Table:
    """One row for each setting on each placement."""
    colours = placement_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    found = table(
        ["placement", "setting"],
        ["cuts", "lost", "oldest\nlost", "damaged", "harmed\nat most", "commits/s", "times", "recovery"],
    )
    for row in rows:
        tone = Tone.WORSE if row.breaks_promise else Tone.PLAIN
        below = (Text("frontier", Tone.BETTER),) if row.on_frontier else ()
        found.add(
            Cell(row.placement, below=(Text(row.devices, Tone.QUIET),), colour=colours[row.placement]),
            Cell(row.durability, below=below),
            figure(row.cuts, numbers.count),
            Cell(numbers.count(row.lost), tone, value=row.lost),
            Cell(lost_age(row).replace("at least", "≥") or numbers.NONE, value=row.most_lost_ms),
            Cell(numbers.count(row.damaged), tone, value=row.damaged),
            figure(row.at_most, numbers.percent),
            estimate(row.rate, numbers.significant),
            estimate(row.ratio, numbers.ratio),
            figure(row.recovery_s, numbers.seconds),
        )
    return found


def _broken(rows: Sequence[CutRow]) -> bool:
    return any(row.breaks_promise for row in rows)


def _chart(engine: str, rows: Sequence[CutRow], baseline: str) -> Chart:
    return Chart(
        f"frontier-{engine}",
        described_frontier(rows),
        lambda look: frontier_chart(rows, baseline, look),
        CAPTION,
    )
