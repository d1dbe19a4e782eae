"""Charts of laps in the papers' forms: times on a log scale, times normalised to 100 %, speed-up ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt

from tierwise.model.statistics import Bound, Interval
from tierwise.report import numbers
from tierwise.report.charts.comparison import TIMES, Datum, ratio_domain
from tierwise.report.charts.look import (
    Look,
    axis,
    colours,
    finish,
    interval_bars,
    legend,
    line_at_one,
    log_scale,
    plot,
    row_axis,
)
from tierwise.report.study.answer import Comparison
from tierwise.report.study.laps import LapCell, LapRow, chief_laps

_MOST_NORMALISED = 12


def lap_times_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Median time of every lap with its interval, on a log scale; capped laps are hollow."""
    cells = [(lap, cell) for lap in chief_laps(comparison.laps) for cell in lap.cells]
    ends = [end for _, cell in cells for end in _ends(cell.elapsed) if end > 0]
    if not ends:
        return None
    scale, ticks = log_scale([*ends, 0.8 * min(ends)])
    data = [
        _datum(lap, cell, cell.elapsed.estimate, numbers.seconds(cell.elapsed.estimate))
        | {"low": cell.elapsed.low, "high": None if cell.stopped else cell.elapsed.high}
        | {"from": scale["domain"][0]}
        for lap, cell in cells
        if cell.elapsed
    ]
    title = "Time of each lap (s, log scale)"
    x = alt.X("value:Q", scale=scale, axis=axis(title, values=ticks, format="~g"))
    layers = _bars(comparison, data, x, "from:Q", look)
    whiskers = _rows(comparison, data, look).transform_filter("datum.high != null")
    ends_x = alt.X("low:Q", scale=scale, axis=x["axis"])
    layers.insert(
        1, whiskers.mark_rule(strokeWidth=1.5, color=look.colour("ink")).encode(x=ends_x, x2="high:Q")
    )
    return finish(layers, look, _height_px(comparison), title, right_px=_right_px(look))


def normalised_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Time of every lap in percent of its slowest placement: less is better."""
    laps = chief_laps(comparison.laps)
    if len(laps) > _MOST_NORMALISED or len(comparison.rows) < 2:
        return None
    data = [
        _datum(lap, cell, share, numbers.percent(share / 100)) | {"from": 0}
        for lap in laps
        for cell in lap.cells
        if cell.elapsed and lap.slowest_s and (share := 100 * cell.elapsed.estimate / lap.slowest_s)
    ]
    if not data:
        return None
    title = "Time of each lap (% of the slowest placement)"
    x = alt.X("value:Q", scale=alt.Scale(domain=[0, 100]), axis=axis(title, tickCount=5))
    layers = _bars(comparison, data, x, "from:Q", look)
    return finish(layers, look, _height_px(comparison), title, right_px=_right_px(look))


def lap_ratios_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Speed-up of each lap over the baseline, with its interval; a triangle marks a bound."""
    found = [
        (lap, cell, cell.speedup) for lap in chief_laps(comparison.laps) for cell in lap.cells if cell.speedup
    ]
    if not found:
        return None
    low, high, ticks = ratio_domain([ratio for _, _, ratio in found], look)
    title = f"Times faster than {comparison.baseline}"
    x_axis = axis(f"{title} (ratio scale)", values=ticks, labelExpr=TIMES)
    x = alt.X("value:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=x_axis)
    data = [
        _datum(lap, cell, ratio.estimate, "")
        | {"low": ratio.low, "high": ratio.high, "bound": ratio.bound.value}
        for lap, cell, ratio in found
    ]
    base = _rows(comparison, data, look, with_baseline=False)
    exact = base.transform_filter(f"datum.bound == '{Bound.EXACT}'")
    shapes = alt.Scale(
        domain=[one.value for one in Bound], range=["circle", "triangle-right", "triangle-left"]
    )
    layers = [
        line_at_one(x, look),
        interval_bars(exact, x, 5),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, shape=alt.Shape("bound:N", scale=shapes, legend=None)
        ),
    ]
    return finish(layers, look, _height_px(comparison), title, right_px=24)


def _datum(lap: LapRow, cell: LapCell, value: float, text: str) -> Datum:
    bound = "≥ " if cell.stopped else ""
    label = f"{bound}{text}" + (", capped" if cell.stopped else "")
    return {
        "lap": lap.label,
        "placement": cell.placement,
        "value": value,
        "text": label,
        "capped": cell.stopped,
    }


def _rows(comparison: Comparison, data: list[Datum], look: Look, with_baseline: bool = True) -> alt.Chart:
    """Rows of laps, with one line per placement in each."""
    names = [row.placement for row in comparison.rows if with_baseline or not row.is_baseline]
    labels = list(dict.fromkeys(str(datum["lap"]) for datum in data))
    palette = comparison.colours
    rows: alt.Chart = plot(data).encode(
        y=alt.Y(
            "lap:N", sort=labels, axis=row_axis(look), scale=alt.Scale(paddingInner=0.28, paddingOuter=0.1)
        ),
        yOffset=alt.YOffset("placement:N", sort=names, scale=alt.Scale(domain=names, paddingInner=0.12)),
        color=alt.Color(
            "placement:N", scale=colours(palette, look), legend=legend(look, 2 if look.narrow else 5)
        ),
    )
    return rows


def _bars(comparison: Comparison, data: list[Datum], x: alt.X, start: str, look: Look) -> list[alt.Chart]:
    """Full bars for finished laps, hollow dashed bars for stopped ones, figures at the end."""
    base = _rows(comparison, data, look).encode(x=x)
    palette = colours(comparison.colours, look)
    stopped = base.transform_filter("datum.capped").encode(
        x2=start, stroke=alt.Stroke("placement:N", scale=palette, legend=None)
    )
    return [
        base.transform_filter("!datum.capped").mark_bar(opacity=0.9).encode(x2=start),
        stopped.mark_bar(fillOpacity=0.15, strokeDash=[4, 3], strokeWidth=1.5),
        base.mark_text(align="left", dx=6, fontSize=11).encode(
            text="text:N", color=alt.ColorValue(look.colour("muted"))
        ),
    ]


def _ends(interval: Interval | None) -> list[float]:
    ends = [interval.estimate, interval.low, interval.high] if interval else []
    return [end for end in ends if end is not None]


def _height_px(comparison: Comparison) -> int:
    return 84 + len(chief_laps(comparison.laps)) * (12 + 15 * len(comparison.rows))


def _right_px(look: Look) -> int:
    return 70 if look.narrow else 110


def described_lap_times(comparison: Comparison) -> str:
    """The same chart in words."""
    return f"Median time of each lap. {_listed(chief_laps(comparison.laps), _time_text)}"


def described_normalised(comparison: Comparison) -> str:
    """The same chart in words."""
    shares = _listed(chief_laps(comparison.laps), _share_text)
    return f"Time of each lap as a share of its slowest placement. {shares}"


def described_lap_ratios(comparison: Comparison) -> str:
    """The same chart in words."""
    laps = chief_laps(comparison.laps)
    return f"Times faster than {comparison.baseline}, by lap. {_listed(laps, _ratio_text)}"


def _listed(laps: Sequence[LapRow], text: Callable[[LapRow, LapCell], str]) -> str:
    parts = [
        f"{lap.label}: "
        + ", ".join(f"{cell.placement} {text(lap, cell)}" for cell in lap.cells if text(lap, cell))
        for lap in laps
    ]
    return f"{'; '.join(parts)}."


def _time_text(_: LapRow, cell: LapCell) -> str:
    return numbers.signed(cell.elapsed, numbers.seconds(cell.elapsed.estimate)) if cell.elapsed else ""


def _share_text(lap: LapRow, cell: LapCell) -> str:
    return numbers.percent(cell.elapsed.estimate / lap.slowest_s) if cell.elapsed and lap.slowest_s else ""


def _ratio_text(_: LapRow, cell: LapCell) -> str:
    return numbers.signed(cell.speedup, numbers.ratio(cell.speedup.estimate)) if cell.speedup else ""
