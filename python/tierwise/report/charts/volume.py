"""I/O volume: bytes and requests by role, and write amplification down to the medium."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from tierwise.report import numbers
from tierwise.report.charts.look import Look, axis, finish, legend, plot, row_axis
from tierwise.report.palette import ROLE_COLOURS
from tierwise.report.study.answer import Comparison
from tierwise.report.study.summary import IoRow

_DIRECTIONS = ("written", "read")
_MIB = 1 << 20


def bytes_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """MiB written and read, stacked by role."""
    return _stacked(
        comparison, look, "Bytes moved (MiB)", lambda io: (io.write_bytes / _MIB, io.read_bytes / _MIB)
    )


def requests_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Requests that reached the devices, stacked by role."""
    return _stacked(comparison, look, "Requests", lambda io: (io.writes, io.reads))


def _stacked(
    comparison: Comparison, look: Look, title: str, of: Callable[[IoRow], tuple[float, float]]
) -> alt.LayerChart | None:
    data = [
        {"bar": f"{row.placement}, {direction}", "role": io.name, "value": value, "place": place}
        for row in comparison.rows
        for direction, index in zip(_DIRECTIONS, (0, 1), strict=True)
        for place, io in enumerate(row.summary.io)
        if (value := of(io)[index]) > 0
    ]
    if not data:
        return None
    bars = list(dict.fromkeys(str(datum["bar"]) for datum in data))
    roles = [name for name in ROLE_COLOURS if any(datum["role"] == name for datum in data)]
    scale = alt.Scale(domain=roles, range=[look.colour(ROLE_COLOURS[role]) for role in roles])
    base = plot(data).encode(
        y=alt.Y("bar:N", sort=bars, axis=row_axis(look, two_lines=look.narrow)),
        x=alt.X(
            "value:Q",
            stack="zero",
            axis=axis(title, tickCount=5, format="~s" if title == "Requests" else "~g"),
        ),
        order=alt.Order("place:Q"),
        color=alt.Color("role:N", scale=scale, legend=legend(look, 3 if look.narrow else 8)),
    )
    drawn = base.mark_bar(stroke=look.colour("ground"), strokeWidth=1)
    return finish([drawn], look, 84 + 26 * len(bars), title, right_px=20)


def amplification_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Bytes at the devices over bytes written by the engine, and flash bytes over host bytes."""
    data = [
        {"bar": f"{row.placement}, {name}", "value": value, "text": f"{numbers.ratio(value)}×"}
        for row in comparison.rows
        for name, value in row.summary.amplification.items()
    ]
    if not data:
        return None
    title = "Bytes written for each byte asked to be written"
    base = plot(data).encode(
        y=alt.Y("bar:N", sort=[str(d["bar"]) for d in data], axis=row_axis(look, two_lines=look.narrow)),
        x=alt.X("value:Q", axis=axis(title, tickCount=5, format="~g")),
    )
    bars = base.mark_bar(color=look.colour("place-1"))
    text = base.mark_text(align="left", dx=5, fontSize=11, color=look.colour("muted")).encode(text="text:N")
    return finish([bars, text], look, 60 + 30 * len(data), title, right_px=48)


def described_bytes(comparison: Comparison) -> str:
    """The same chart in words."""
    return _described(comparison, "Bytes moved by role", _bytes_text)


def described_requests(comparison: Comparison) -> str:
    """The same chart in words."""
    return _described(comparison, "Requests to devices by role", _requests_text)


def _bytes_text(io: IoRow) -> str:
    return f"{numbers.size(io.write_bytes)} written and {numbers.size(io.read_bytes)} read"


def _requests_text(io: IoRow) -> str:
    return f"{numbers.count(io.writes)} writes and {numbers.count(io.reads)} reads"


def _described(comparison: Comparison, title: str, text: Callable[[IoRow], str]) -> str:
    parts = [
        f"{row.placement}: " + ", ".join(f"{io.name} {text(io)}" for io in row.summary.io)
        for row in comparison.rows
        if row.summary.io
    ]
    return f"{title}. {'; '.join(parts)}."


def described_amplification(comparison: Comparison) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement}, {name}: {numbers.ratio(value)}"
        for row in comparison.rows
        for name, value in row.summary.amplification.items()
    ]
    return f"Bytes written for each byte asked to be written. {'; '.join(parts)}."
