"""Time breakdown of a recording: one bar per class of threads, and the roles of its files below."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from tierwise.model.roles import Role
from tierwise.recording.breakdown import Breakdown, ClassTime, Part
from tierwise.report import numbers
from tierwise.report.charts.look import WIDE, Look, axis, finish, legend, plot, row_axis
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
_DARK_TEXT_ON = {"wait-log_lock", "wait-data_write"}
_THEME_TEXT_ON = {"wait-client", "wait-other", "line"}
_BY_ROLE = ", by role"
_ROW_PX = 40
_PX_OF_LABEL = {True: 62, False: 26}
"""Width in pixels of a label with role name and share."""


def profile_chart(found: Breakdown, look: Look = WIDE) -> alt.LayerChart:
    """Shares of each class's time, like a flame graph of two levels: parts, and roles below them."""
    data = [datum for one in found.classes for datum in _bars(one, look)]
    names = list(dict.fromkeys(str(datum["row"]) for datum in data))
    ordered = sorted(data, key=lambda datum: str(datum["row"]).endswith(_BY_ROLE))
    colours = {str(datum["kind"]): str(datum["colour"]) for datum in ordered}
    columns = 2 if look.narrow else 5
    scale = alt.Scale(domain=list(colours), range=[look.colour(name) for name in colours.values()])
    x = alt.X("from:Q", scale=alt.Scale(domain=[0, 100]), axis=axis("Share of time (%)", tickCount=5))
    y = alt.Y("row:N", sort=names, axis=row_axis(look), scale=alt.Scale(paddingInner=0.12, paddingOuter=0.1))
    base = plot(data).encode(y=y)
    bars = base.mark_bar(stroke=look.colour("ground"), strokeWidth=1).encode(
        x=x, x2="to:Q", color=alt.Color("kind:N", scale=scale, legend=legend(look, columns))
    )
    labels = base.transform_filter("datum.label != ''").mark_text(fontSize=12, fontWeight="bold")
    labels = labels.encode(x="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None))
    height = 52 + _ROW_PX * len(names) + 22 * -(-len(colours) // columns)
    return finish([bars, labels], look, height, "Where the time went", right_px=14)


def _bars(one: ClassTime, look: Look) -> Iterator[dict[str, object]]:
    """Parts in their order, and each role's share below its part."""
    name = CLASS_NAMES[one.name]
    start = 0.0
    for part in PART_NAMES:
        slices = [slice_ for slice_ in one.slices if slice_.part == part and slice_.share > 0]
        share = sum(slice_.share for slice_ in slices)
        if share:
            yield _bar(name, PART_NAMES[part], _PART_COLOURS[part], (start, share), look)
        for slice_ in slices:
            if slice_.role is not None:
                role: Role = slice_.role
                row = f"{name}{_BY_ROLE}"
                yield _bar(row, role.value, ROLE_COLOURS[role.value], (start, slice_.share), look)
            start += slice_.share


def _bar(row: str, kind: str, colour: str, span: tuple[float, float], look: Look) -> dict[str, object]:
    start, share = span
    by_role = row.endswith(_BY_ROLE)
    plot_px = look.width_px - (120 if look.narrow else 140)
    room = share * plot_px >= _PX_OF_LABEL[by_role]
    return {
        "row": row,
        "kind": kind,
        "colour": colour,
        "from": 100 * start,
        "to": 100 * (start + share),
        "middle": 100 * (start + share / 2),
        "label": "" if not room else kind if by_role else f"{100 * share:.0f}",
        "ink": _text_on(colour, look),
    }


def _text_on(colour: str, look: Look) -> str:
    """A readable text colour on the bar."""
    if colour in _THEME_TEXT_ON:
        return look.colour("ink")
    return "#1c1e21" if colour in _DARK_TEXT_ON else "#ffffff"


def described_profile(found: Breakdown) -> str:
    """The same chart in words."""
    parts = [
        f"{CLASS_NAMES[one.name]}: "
        + ", ".join(f"{PART_NAMES[part]} {numbers.percent(share)}" for part, share in one.parts.items())
        for one in found.classes
    ]
    return f"Share of time. {'; '.join(parts)}."
