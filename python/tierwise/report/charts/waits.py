"""Breakdown of session time: one stacked bar for each placement."""

from __future__ import annotations

import altair as alt

from tierwise.report import numbers
from tierwise.report.charts.look import Look, axis, finish, legend, plot, row_axis
from tierwise.report.palette import text_on
from tierwise.report.study.answer import Comparison
from tierwise.report.study.summary import WAIT_CLASSES
from tierwise.results import WaitClass

WAIT_NAMES: dict[WaitClass, str] = {
    "log_sync": "log sync",
    "log_lock": "log lock",
    "data_read": "data read",
    "data_write": "data write",
    "lock": "row and other locks",
    "cpu": "on CPU",
    "client": "waiting for client",
    "other": "other",
}


def waits_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Shares of session time, in percent, mean over the valid runs."""
    data = [datum for row in comparison.rows for datum in _bar(row.placement, row.summary.waits, look)]
    if not data:
        return None
    names = list(dict.fromkeys(str(datum["placement"]) for datum in data))
    seen = [kind for kind in WAIT_CLASSES if any(datum["kind"] == WAIT_NAMES[kind] for datum in data)]
    scale = alt.Scale(
        domain=[WAIT_NAMES[kind] for kind in seen], range=[look.colour(f"wait-{kind}") for kind in seen]
    )
    x = alt.X("from:Q", scale=alt.Scale(domain=[0, 100]), axis=axis("Share of session time (%)", tickCount=5))
    y = alt.Y(
        "placement:N", sort=names, axis=row_axis(look), scale=alt.Scale(paddingInner=0.32, paddingOuter=0.1)
    )
    base = plot(data).encode(y=y)
    bars = base.mark_bar(stroke=look.colour("ground"), strokeWidth=1).encode(
        x=x, x2="to:Q", color=alt.Color("kind:N", scale=scale, legend=legend(look, 2 if look.narrow else 4))
    )
    labels = base.transform_filter("datum.label != ''").mark_text(fontSize=12, fontWeight="bold")
    labels = labels.encode(x="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None))
    legend_rows = -(-len(seen) // (2 if look.narrow else 4))
    height = 52 + 46 * len(names) + 22 * legend_rows
    return finish([bars, labels], look, height, "Where session time went", right_px=14)


def _bar(placement: str, waits: dict[WaitClass, float], look: Look) -> list[dict[str, object]]:
    room = 0.12 if look.narrow else 0.045
    start, data = 0.0, []
    for kind, share in waits.items():
        end = start + 100 * share
        data.append({
            "placement": placement,
            "kind": WAIT_NAMES[kind],
            "from": start,
            "to": end,
            "middle": (start + end) / 2,
            "label": f"{100 * share:.0f}" if share >= room else "",
            "ink": text_on(kind, look.colour),
        })  # fmt: skip
        start = end
    return data


def described_waits(comparison: Comparison) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement}: "
        + ", ".join(f"{WAIT_NAMES[k]} {numbers.percent(s)}" for k, s in row.summary.waits.items())
        for row in comparison.rows
        if row.summary.waits
    ]
    return f"Share of session time. {'; '.join(parts)}."
