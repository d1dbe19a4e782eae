"""What survives power cuts and deaths of devices: charts, tables and sentences for each engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.lab.analysis.faults import (
    CutRow,
    DeathRow,
    death_sentence,
    lost_age,
    percent_at_most,
    sentence,
)
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.names import gathered
from tierwise.report import document as doc
from tierwise.report.charts.look import Look, axis, colours, finish, legend, log_scale, plot
from tierwise.report.palette import placement_names

_NONE_MS = 0.3
"""Where rows without loss stand on the axis."""
_BEYOND = 4.0
"""Rows that were damaged stand this factor right of the greatest loss."""


def frontier_chart(rows: Sequence[CutRow], baseline: str, look: Look) -> alt.LayerChart:
    """One point for each setting on each placement; both axes are logarithmic."""
    shown = [row for row in rows if row.rate is not None]
    most_ms = max([10.0, *(row.most_lost_ms for row in shown if row.most_lost_ms)])
    damaged_ms = most_ms * _BEYOND
    any_damaged = any(row.damaged for row in shown)
    last_ms = damaged_ms if any_damaged else most_ms
    data = [_point(row, damaged_ms) for row in shown]
    y_scale, y_ticks = log_scale([row.rate.estimate for row in shown if row.rate])
    decades = [10.0**power for power in range(7) if 10.0**power <= most_ms]
    x = alt.X(
        "age:Q",
        scale=alt.Scale(type="log", domain=[_NONE_MS * 0.7, last_ms * 1.6], nice=False),
        axis=axis(
            "age of the oldest lost commit",
            values=[_NONE_MS, *decades, *([damaged_ms] if any_damaged else [])],
            labelExpr=f"datum.value < 1 ? 'none lost' : datum.value > {most_ms} ? 'damaged' "
            ": datum.value < 1000 ? datum.value + ' ms' : datum.value / 1000 + ' s'",
        ),
    )
    y = alt.Y(
        "rate:Q", scale=y_scale, axis=axis("commits a second (log scale)", values=y_ticks, format=",~g")
    )
    names = placement_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    colour = alt.Color(
        "placement:N", scale=colours(names, look), legend=legend(look, 2 if look.narrow else 5)
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=["point", "at least", "damaged"], range=["circle", "triangle-right", "cross"]),
        legend=None,
    )
    base = plot(data).encode(x=x, y=y)
    rings = base.transform_filter("datum.frontier").mark_point(
        size=260, strokeWidth=1.5, color=look.colour("ink"), opacity=0.7
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(color=colour, shape=shape)
    labels = base.mark_text(
        align="left", dx=11, fontSize=10 if look.narrow else 11, color=look.colour("muted"), limit=180
    ).encode(text="label:N")
    return finish([rings, points, labels], look, 340, "Rate against loss", right_px=90)


def _point(row: CutRow, damaged_ms: float) -> dict[str, object]:
    assert row.rate is not None
    kind = "damaged" if row.damaged else "at least" if row.at_least else "point"
    return {
        "placement": row.placement,
        "age": damaged_ms if row.damaged else max(row.most_lost_ms or 0, _NONE_MS),
        "rate": row.rate.estimate,
        "kind": kind,
        "frontier": row.on_frontier,
        "label": row.durability,
    }


def described_frontier(rows: Sequence[CutRow]) -> str:
    """The same chart in words."""
    rates = [
        f"{sentence(row)} {numbers.significant(row.rate.estimate)} commits/s." for row in rows if row.rate
    ]
    return " ".join(["Rate of commits against loss.", *rates])


CAPTION = (
    "Up is more commits a second, left is less loss. A ring is on the frontier: no other point is as fast "
    "and loses as little. A triangle lost its whole load, so that the true age is greater."
)


def frontier_blocks(rows: Sequence[CutRow], baseline: str) -> list[doc.Block]:
    """For each engine its chart, its table and its sentences."""
    return [_engine(name, own, baseline) for name, own in gathered((row.engine, row) for row in rows).items()]


def frontier_charts(rows: Sequence[CutRow], baseline: str) -> list[doc.Chart]:
    """The charts alone."""
    return [_chart(name, own, baseline) for name, own in gathered((row.engine, row) for row in rows).items()]


def frontier_table(rows: Sequence[CutRow], baseline: str) -> doc.Table:
    """One row for each setting on each placement."""
    colours = placement_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    frontiers = doc.table(
        ["placement", "setting"],
        ["cuts", "lost", "oldest\nlost", "damaged", "harmed\nat most", "commits/s", "times", "recovery"],
    )
    for row in rows:
        tone = doc.Tone.WORSE if row.breaks_promise else doc.Tone.PLAIN
        below = (doc.Text("frontier", doc.Tone.BETTER),) if row.on_frontier else ()
        frontiers.add(
            doc.Cell(
                row.placement, below=(doc.Text(row.devices, doc.Tone.QUIET),), colour=colours[row.placement]
            ),
            doc.Cell(row.durability, below=below),
            doc.figure(row.cuts, numbers.count),
            doc.Cell(numbers.count(row.lost), tone, value=row.lost),
            doc.Cell(lost_age(row).replace("at least", "≥") or numbers.NONE, value=row.most_lost_ms),
            doc.Cell(numbers.count(row.damaged), tone, value=row.damaged),
            doc.Cell(f"{percent_at_most(row)}\u00a0%", value=row.at_most),
            doc.estimate(row.rate, numbers.significant),
            doc.estimate(row.ratio, numbers.ratio),
            doc.figure(row.recovery_s, numbers.seconds),
        )
    return frontiers


def _engine(name: str, rows: Sequence[CutRow], baseline: str) -> doc.Section:
    damage = [f"{row.durability} on {row.placement}: {row.damage}" for row in rows if row.damage]
    said = [doc.Bullets([sentence(row) for row in rows]), *_messages(rows, damage)]
    blocks = [_chart(name, rows, baseline), frontier_table(rows, baseline), *said]
    return doc.Section(name, blocks, id=f"cuts-{name}")


def _messages(rows: Sequence[CutRow] | Sequence[DeathRow], messages: Sequence[str]) -> list[doc.Block]:
    """What the engine's messages said, then why runs ended early."""
    early = dict.fromkeys(problem for row in rows for problem in row.problems)
    return [*doc.texts(messages, doc.Tone.QUIET), *doc.texts(early, doc.Tone.WARNING)]


def _chart(engine: str, rows: Sequence[CutRow], baseline: str) -> doc.Chart:
    return doc.Chart(
        f"frontier-{engine}",
        described_frontier(rows),
        lambda look: frontier_chart(rows, baseline, look),
        CAPTION,
    )


def death_blocks(rows: Sequence[DeathRow]) -> list[doc.Block]:
    """For each engine its table, its sentences, and what its messages said."""
    return [_deaths_of(name, own) for name, own in gathered((row.engine, row) for row in rows).items()]


def death_table(rows: Sequence[DeathRow]) -> doc.Table:
    """One row for each role."""
    counted = ["deaths", "as\nit is", "after\na step", "never", "lost", "most\nlost", "damaged"]
    deaths = doc.table(["role"], [*counted, "load\nran on", "start"])
    for row in rows:
        worst = row.most_lost / row.owed if row.lost else None
        deaths.add(
            doc.Cell(row.role, doc.Tone.WORSE if row.never or row.damaged else doc.Tone.PLAIN),
            *(
                doc.figure(n, numbers.count)
                for n in (row.deaths, row.as_is, row.salvaged, row.never, row.lost)
            ),
            doc.figure(worst, numbers.percent),
            *(doc.figure(n, numbers.count) for n in (row.damaged, row.ran_on)),
            doc.figure(row.recovery_s, numbers.seconds),
        )
    return deaths


def _deaths_of(name: str, rows: Sequence[DeathRow]) -> doc.Section:
    messages = [f"{row.role}, started as it is: {row.refused}" for row in rows if row.refused]
    messages += [
        f"{row.role}, afterwards: {row.damage}" for row in rows if row.damage and row.damage != row.refused
    ]
    said = [doc.Bullets([death_sentence(row) for row in rows]), *_messages(rows, messages)]
    blocks = [death_table(rows), *said]
    return doc.Section(name, blocks, id=f"deaths-{name}")
