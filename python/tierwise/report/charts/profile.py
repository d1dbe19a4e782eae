"""Time breakdown of a recording by class of threads, and a day of recordings over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from tierwise.model.extras import alt
from tierwise.predict.timeline import Moment, Timeline
from tierwise.recording.breakdown import Breakdown, ClassTime, Part
from tierwise.report import numbers
from tierwise.report.charts.builders import Slice, stacked_chart
from tierwise.report.charts.look import WIDE, Look, axis, finish, in_words, legend, percent_x, plot
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.recording.profile_words import CLASS_NAMES, PART_NAMES

_PART_COLOURS: dict[Part, str] = {
    "cpu": "wait-cpu",
    "runnable": "muted",
    "log_device": "wait-log_sync",
    "log_queue": "wait-log_lock",
    "read": "wait-data_read",
    "write": "wait-data_write",
    "lock": "wait-lock",
    "client": "wait-client",
    "sleep": "wait-other",
    "other": "line",
}
_BY_ROLE = ", by role"
_PX_OF_ROLE = 62
_PX_OF_SHARE = 26
"""Width in pixels of a label."""


def profile_chart(breakdown: Breakdown, look: Look = WIDE) -> alt.LayerChart:
    """Shares of each class's time, like a flame graph of two levels: parts, and roles below them."""
    plot_px = look.width_px - (120 if look.narrow else 140)
    slices = [bar_slice for each in breakdown.classes for bar_slice in _slices(each, plot_px)]
    parts = {PART_NAMES[part]: colour for part, colour in _PART_COLOURS.items()}
    x = percent_x("Share of time (%)")
    return stacked_chart(slices, x, parts | ROLE_COLOURS, look, "Where the time went")


def _slices(class_time: ClassTime, plot_px: float) -> Iterator[Slice]:
    """Parts in their order, and each role's share below its part; labels where there is room."""
    name = CLASS_NAMES[class_time.name]
    start = 0.0
    for part in PART_NAMES:
        own = [each for each in class_time.slices if each.part == part and each.share > 0]
        share = sum(each.share for each in own)
        if share:
            label = f"{100 * share:.0f}" if share * plot_px >= _PX_OF_SHARE else ""
            yield _slice(name, PART_NAMES[part], start, share, label)
        for each in own:
            if each.role is not None:
                label = each.role.value if each.share * plot_px >= _PX_OF_ROLE else ""
                yield _slice(f"{name}{_BY_ROLE}", each.role.value, start, each.share, label)
            start += each.share


def _slice(row: str, group: str, start: float, share: float, label: str) -> Slice:
    return Slice(row, group, numbers.percent(share), 100 * start, 100 * (start + share), label)


def described_profile(breakdown: Breakdown) -> str:
    """The shares of parts in words."""
    slices = [bar_slice for each in breakdown.classes for bar_slice in _slices(each, 0)]
    return in_words(
        "Share of time", [bar_slice for bar_slice in slices if not bar_slice.row.endswith(_BY_ROLE)]
    )


LOG_WAITS = "waits for the log"
_HEIGHT_PX = 190
_SHORT = timedelta(minutes=10)
_DASH = [5, 3]
_PERCENT = 100.0


def rate_chart(day: Timeline, look: Look) -> alt.LayerChart:
    """Transactions (or requests) a second of each recording."""
    points = [
        _point(moment, day.unit, moment.rate_per_s) for moment in day.moments if moment.rate_per_s is not None
    ]
    return _lines(points, {day.unit: "place-1"}, look, f"{day.unit.capitalize()} a second")


def p99_chart(day: Timeline, look: Look) -> alt.LayerChart:
    """99th percentile of the latency of each recording, in ms."""
    points = [
        _point(moment, "p99", moment.p99_us / 1e3) for moment in day.moments if moment.p99_us is not None
    ]
    return _lines(points, {"p99": "place-1"}, look, "p99 latency (ms)")


def shares_chart(day: Timeline, look: Look) -> alt.LayerChart:
    """Sessions' time that goes to the log, dashed; and time in which each role's device is busy."""
    points = [
        _point(moment, LOG_WAITS, _PERCENT * moment.log_wait_share)
        for moment in day.moments
        if moment.log_wait_share is not None
    ]
    points += [
        _point(moment, role.value, _PERCENT * moment.busy.get(role, 0.0))
        for role in day.roles
        for moment in day.moments
        if not moment.without
    ]
    colours = {LOG_WAITS: "ink"} | {role.value: ROLE_COLOURS[role.value] for role in day.roles}
    return _lines(points, colours, look, "Share of time (%)")


def _point(moment: Moment, kind: str, value: float) -> dict[str, object]:
    return {"at": moment.started_at, "kind": kind, "value": value}


def _lines(
    points: list[dict[str, object]], colours: dict[str, str], look: Look, title: str
) -> alt.LayerChart:
    scale = alt.Scale(domain=list(colours), range=[look.colour(name) for name in colours.values()])
    shown = legend(look, 2 if look.narrow else 5) if len(colours) > 1 else None
    base = plot(points).encode(
        x=alt.X("at:T", scale=alt.Scale(type="utc"), axis=_time_axis(points)),
        y=alt.Y("value:Q", scale=alt.Scale(domainMin=0, nice=True), axis=axis(title, tickCount=5)),
        color=alt.Color("kind:N", scale=scale, legend=shown),
    )
    dash = alt.condition(f"datum.kind === '{LOG_WAITS}'", alt.value(_DASH), alt.value([1, 0]))
    layers = [
        base.mark_line(strokeWidth=1.5, opacity=0.7).encode(strokeDash=dash),
        base.mark_point(filled=True, size=36, opacity=1),
    ]
    return finish(layers, look, _HEIGHT_PX + (40 if shown else 0), title, right_px=14)


def _time_axis(points: Sequence[Mapping[str, object]]) -> alt.Axis:
    """Hours and minutes; with seconds if the whole day takes only minutes."""
    times = [datetime.fromisoformat(str(point["at"])) for point in points]
    is_short = not times or max(times) - min(times) < _SHORT
    shape = "%H:%M:%S" if is_short else "%H:%M"
    return axis("Time (UTC)", tickCount=6, grid=False, format=shape, labelExpr="datum.label")


def described_rate(day: Timeline) -> str:
    """The same chart in words."""
    rates = (
        f"{moment.started_at} {numbers.significant(moment.rate_per_s)}"
        for moment in day.moments
        if moment.rate_per_s
    )
    return _described(f"{day.unit.capitalize()} a second", rates)


def described_p99(day: Timeline) -> str:
    """The same chart in words."""
    latencies = (
        f"{moment.started_at} {numbers.microseconds(moment.p99_us)}"
        for moment in day.moments
        if moment.p99_us
    )
    return _described("99th percentile of the latency", latencies)


def described_shares(day: Timeline) -> str:
    """The same chart in words."""
    parts = (
        f"{moment.started_at} {LOG_WAITS} {numbers.percent(moment.log_wait_share)}, "
        + ", ".join(f"{role} {numbers.percent(moment.busy.get(role, 0.0))}" for role in day.roles)
        for moment in day.moments
        if not moment.without
    )
    return _described("Share of time", parts)


def _described(title: str, parts: Iterable[str]) -> str:
    return f"{title}. {'; '.join(parts)}."
