"""What survives power cuts and deaths of devices: charts, tables and sentences for each engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.lab.analysis.fault_summary import (
    DeviceDeathRow,
    PowerCutRow,
    death_sentence,
    harm_bound_percent,
    oldest_loss_age,
    power_cut_sentence,
)
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.names import group_by_key
from tierwise.report import document as doc
from tierwise.report.charts.chart_style import (
    ChartLook,
    chart_of_records,
    colour_legend,
    finish_chart,
    log_scale,
    placement_colours,
    quantitative_axis,
)
from tierwise.report.palette import placement_colour_names

_NONE_MS = 0.3
"""Where rows without loss stand on the axis."""
_BEYOND = 4.0
"""Rows that were damaged stand this factor right of the greatest loss."""


def frontier_chart(rows: Sequence[PowerCutRow], baseline: str, look: ChartLook) -> alt.LayerChart:
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
        axis=quantitative_axis(
            "age of the oldest lost commit",
            values=[_NONE_MS, *decades, *([damaged_ms] if any_damaged else [])],
            labelExpr=f"datum.value < 1 ? 'none lost' : datum.value > {most_ms} ? 'damaged' "
            ": datum.value < 1000 ? datum.value + ' ms' : datum.value / 1000 + ' s'",
        ),
    )
    y = alt.Y(
        "rate:Q",
        scale=y_scale,
        axis=quantitative_axis("commits a second (log scale)", values=y_ticks, format=",~g"),
    )
    names = placement_colour_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    colour = alt.Color(
        "placement:N",
        scale=placement_colours(names, look),
        legend=colour_legend(look, 2 if look.narrow else 5),
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=["point", "at least", "damaged"], range=["circle", "triangle-right", "cross"]),
        legend=None,
    )
    base = chart_of_records(data).encode(x=x, y=y)
    rings = base.transform_filter("datum.frontier").mark_point(
        size=260, strokeWidth=1.5, color=look.colour("ink"), opacity=0.7
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(color=colour, shape=shape)
    labels = base.mark_text(
        align="left", dx=11, fontSize=10 if look.narrow else 11, color=look.colour("muted"), limit=180
    ).encode(text="label:N")
    return finish_chart([rings, points, labels], look, 340, "Rate against loss", right_px=90)


def _point(row: PowerCutRow, damaged_ms: float) -> dict[str, object]:
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


def frontier_in_words(rows: Sequence[PowerCutRow]) -> str:
    """The same chart in words."""
    rates = [
        f"{power_cut_sentence(row)} {numbers.significant_text(row.rate.estimate)} commits/s."
        for row in rows
        if row.rate
    ]
    return " ".join(["Rate of commits against loss.", *rates])


CAPTION = (
    "Up is more commits a second, left is less loss. A ring is on the frontier: no other point is as fast "
    "and loses as little. A triangle lost its whole load, so that the true age is greater."
)


def frontier_blocks(rows: Sequence[PowerCutRow], baseline: str) -> list[doc.Block]:
    """For each engine its chart, its table and its sentences."""
    return [
        _engine(name, own, baseline) for name, own in group_by_key((row.engine, row) for row in rows).items()
    ]


def frontier_charts(rows: Sequence[PowerCutRow], baseline: str) -> list[doc.Chart]:
    """The charts alone."""
    return [
        _chart(name, own, baseline) for name, own in group_by_key((row.engine, row) for row in rows).items()
    ]


def frontier_table(rows: Sequence[PowerCutRow], baseline: str) -> doc.Table:
    """One row for each setting on each placement."""
    colours = placement_colour_names(list(dict.fromkeys(row.placement for row in rows)), baseline)
    frontiers = doc.empty_table(
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
            doc.figure_cell(row.cuts, numbers.count_text),
            doc.Cell(numbers.count_text(row.lost), tone, value=row.lost),
            doc.Cell(oldest_loss_age(row).replace("at least", "≥") or numbers.NONE, value=row.most_lost_ms),
            doc.Cell(numbers.count_text(row.damaged), tone, value=row.damaged),
            doc.Cell(f"{harm_bound_percent(row)}\u00a0%", value=row.at_most),
            doc.estimate_cell(row.rate, numbers.significant_text),
            doc.estimate_cell(row.ratio, numbers.ratio_text),
            doc.figure_cell(row.recovery_s, numbers.seconds_text),
        )
    return frontiers


def _engine(name: str, rows: Sequence[PowerCutRow], baseline: str) -> doc.Section:
    damage = [f"{row.durability} on {row.placement}: {row.damage}" for row in rows if row.damage]
    said = [doc.Bullets([power_cut_sentence(row) for row in rows]), *_messages(rows, damage)]
    blocks = [_chart(name, rows, baseline), frontier_table(rows, baseline), *said]
    return doc.Section(name, blocks, id=f"cuts-{name}")


def _messages(
    rows: Sequence[PowerCutRow] | Sequence[DeviceDeathRow], messages: Sequence[str]
) -> list[doc.Block]:
    """What the engine's messages said, then why runs ended early."""
    early = dict.fromkeys(problem for row in rows for problem in row.problems)
    return [*doc.paragraphs(messages, doc.Tone.QUIET), *doc.paragraphs(early, doc.Tone.WARNING)]


def _chart(engine: str, rows: Sequence[PowerCutRow], baseline: str) -> doc.Chart:
    return doc.Chart(
        f"frontier-{engine}",
        frontier_in_words(rows),
        lambda look: frontier_chart(rows, baseline, look),
        CAPTION,
    )


def death_blocks(rows: Sequence[DeviceDeathRow]) -> list[doc.Block]:
    """For each engine its table, its sentences, and what its messages said."""
    return [_deaths_of(name, own) for name, own in group_by_key((row.engine, row) for row in rows).items()]


def death_table(rows: Sequence[DeviceDeathRow]) -> doc.Table:
    """One row for each role."""
    counted = ["deaths", "as\nit is", "after\na step", "never", "lost", "most\nlost", "damaged"]
    deaths = doc.empty_table(["role"], [*counted, "load\nran on", "start"])
    for row in rows:
        worst = row.most_lost / row.owed if row.lost else None
        deaths.add(
            doc.Cell(row.role, doc.Tone.WORSE if row.never or row.damaged else doc.Tone.PLAIN),
            *(
                doc.figure_cell(n, numbers.count_text)
                for n in (row.deaths, row.as_is, row.salvaged, row.never, row.lost)
            ),
            doc.figure_cell(worst, numbers.percent_text),
            *(doc.figure_cell(n, numbers.count_text) for n in (row.damaged, row.ran_on)),
            doc.figure_cell(row.recovery_s, numbers.seconds_text),
        )
    return deaths


def _deaths_of(name: str, rows: Sequence[DeviceDeathRow]) -> doc.Section:
    messages = [f"{row.role}, started as it is: {row.refused}" for row in rows if row.refused]
    messages += [
        f"{row.role}, afterwards: {row.damage}" for row in rows if row.damage and row.damage != row.refused
    ]
    said = [doc.Bullets([death_sentence(row) for row in rows]), *_messages(rows, messages)]
    blocks = [death_table(rows), *said]
    return doc.Section(name, blocks, id=f"deaths-{name}")
