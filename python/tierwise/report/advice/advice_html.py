"""The page as one file: text, data, styles and scripts inside, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tierwise.advise import Advice
from tierwise.model import numbers
from tierwise.model.input_files import DATA
from tierwise.model.placement import Role
from tierwise.predict import Estimate
from tierwise.report.advice import page_decision
from tierwise.report.advice.advice_survey import AdviceSurvey
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.document import Block
from tierwise.report.move_steps import move_guide
from tierwise.report.recording.alternatives import (
    growth_blocks,
    machine_blocks,
    memory_blocks,
    setting_blocks,
)
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.tables_report import (
    listed_relations,
    moved_tables_sentences,
    page_table_sets,
    table_sets_table,
    tables_caution,
    tables_headline,
    waits_by_table,
)
from tierwise.report.render import PAGE_STYLE, to_html, without_line_breaks

_WIDTH, _HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 448, 24, 184
_LEAST_BETWEEN = 60
"""Least distance of two labels of sizes, in units of the drawing."""


@dataclass(frozen=True)
class MemoryPoint:
    """The rate with one size of memory.

    Attributes:
        memory_bytes: of the machine.
        rate_per_s: of transactions, with its interval.
        holds_all: whether all tables and indexes fit.
    """

    memory_bytes: int
    rate_per_s: Estimate
    holds_all: bool = False


def memory_points(advice: Advice) -> list[MemoryPoint]:
    """As recorded, then each size; empty if the advice has none, or is of work that is done once."""
    recorded = advice.recorded.rate_per_s
    if not advice.memory or recorded is None or advice.recorded.once:
        return []
    moves = [
        MemoryPoint(move.memory_bytes, move.prediction.rate_per_s, move.holds_all)
        for move in advice.memory
        if move.prediction.rate_per_s is not None
    ]
    return [MemoryPoint(advice.run.memory_bytes, recorded), *moves]


def memory_curve(points: Sequence[MemoryPoint], unit: str) -> Markup:
    """The drawing; the size from which on all tables fit is marked. Nothing for fewer than two points.

    Args:
        points: memory ascending.
        unit: what rates count.
    """
    if len(points) < 2:
        return Markup()
    least, most = (math.log(points[place].memory_bytes) for place in (0, -1))
    top = 1.05 * max(point.rate_per_s.high for point in points) or 1.0

    def x(point: MemoryPoint) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log(point.memory_bytes) - least) / ((most - least) or 1.0)

    def y(rate: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * rate / top

    def path(pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{across:.1f},{down:.1f}" for across, down in pairs)

    band = [
        *((x(point), y(point.rate_per_s.high)) for point in points),
        *((x(point), y(point.rate_per_s.low)) for point in reversed(points)),
    ]
    drawn = [Markup('<polygon class="band" points="{}"/>').format(path(band))]
    for share in (0.0, 0.5, 1.0):
        rate = share * top / 1.05
        line = '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
        label = '<text class="end" x="{}" y="{:.1f}">{}</text>'
        drawn.append(Markup(line).format(_LEFT, _RIGHT, y(rate), y(rate)))
        drawn.append(Markup(label).format(_LEFT - 8, y(rate) + 4, numbers.significant_text(rate, 2)))
    drawn.append(
        Markup('<polyline points="{}"/>').format(
            path([(x(point), y(point.rate_per_s.value)) for point in points])
        )
    )
    right = -math.inf
    for point in points:
        drawn.append(
            Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"/>').format(x(point), y(point.rate_per_s.value))
        )
        if x(point) - right >= _LEAST_BETWEEN:
            right, words = x(point), numbers.size_text(point.memory_bytes)
            drawn.append(Markup('<text x="{:.1f}" y="{}">{}</text>').format(x(point), _BOTTOM + 20, words))
    if fits := next((point for point in points if point.holds_all), None):
        line = '<line class="fits" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>'
        drawn.append(Markup(line).format(x(fits), _TOP, _BOTTOM))
        side = "end" if x(fits) > (_LEFT + _RIGHT) / 2 else "start"
        shift = -6 if side == "end" else 6
        label = '<text class="{}" x="{:.1f}" y="{}">all fits</text>'
        drawn.append(Markup(label).format(side, x(fits) + shift, _TOP - 8))
    text = f"{unit} a second over the memory, from {numbers.size_text(points[0].memory_bytes)} to "
    text += numbers.size_text(points[-1].memory_bytes)
    frame = '<svg class="curve" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    return Markup(frame).format(_WIDTH, _HEIGHT, text, Markup("").join(drawn))


FOLDER = DATA / "templates" / "advice"
_WIDGETS = ("figures", "board", "choices", "filters", "chart", "exports")
SCRIPTS = ("numbers", "placements", "state", *_WIDGETS, "explorer")
"""Modules in the order in which they are inlined; ``live`` follows on a served page."""


def advice_page(
    subject: AdviceSurvey, live: Mapping[str, Any] | None = None, day: Sequence[Block] = ()
) -> str:
    """The page as HTML.

    Args:
        subject: the advice and its placements.
        live: what a server tells ``live.js``, which is inlined then; ``None`` for a file.
        day: of which the recording is a part: whether its loads agree, and its timeline.
    """
    data, stays = advice_page_data(subject, live), subject.option.stays
    data["chart"] = rate_cost_chart(subject)
    script = _script(SCRIPTS if live is None else (*SCRIPTS, "live"))
    style = "\n".join([PAGE_STYLE, (FOLDER / "advice.css").read_text("utf-8")])
    bundle = (FOLDER / "vega.js.gz").read_bytes()
    made = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
    return made.get_template("page.html.j2").render(
        title=f"advice for {subject.recording.name}",
        name=subject.recording.name,
        engine=" ".join(filter(None, [subject.advice.run.engine, subject.advice.run.engine_version])),
        policy=_policy([script, gzip.decompress(bundle).decode()], style, connects=live is not None),
        live=live is not None,
        style=Markup(style),
        script=Markup(script),
        bundle=base64.b64encode(bundle).decode(),
        data=Markup(_json(data)),
        unusable=to_html(doubt_texts(subject.advice.usable, subject.advice.remarks)),
        headline=without_line_breaks(page_decision.page_headline(subject)),
        sentences=to_html(page_decision.decision_sentences(subject)),
        day=to_html(day) if day else "",
        growth=to_html(growth_blocks(subject.advice)),
        comparison="" if stays else to_html([page_decision.before_and_after(subject)]),
        time=to_html([page_decision.time_table(subject)]) if stays else "",
        ladder=to_html(page_decision.ladder_blocks(subject)),
        risks="" if stays else to_html([page_decision.risk_blocks(subject)]),
        basis=to_html(page_decision.basis_blocks(subject)),
        bill=to_html(page_decision.cost_blocks(subject)),
        settings=to_html(setting_blocks(subject.advice, titled=False)),
        guide=move_guide(subject.advice.run.engine, subject.moves, subject.advice.run.footprints),
        switches=bool(subject.advice.settings),
        tables=_tables(subject),
        curve=memory_curve(memory_points(subject.advice), subject.advice.run.unit),
        memory=to_html(memory_blocks(subject.advice, titled=False)),
        machines=to_html(machine_blocks(subject.advice, titled=False)),
    )


def _tables(subject: AdviceSurvey) -> dict[str, Any] | None:
    """What the page says of tables and indexes."""
    advice = subject.advice.tables
    if advice is None:
        return None
    best, more = advice.devices[0].recommended, len(advice.rows) - len(listed_relations(advice))
    return {
        "headline": tables_headline(advice),
        "caution": tables_caution(advice),
        "sets": to_html([table_sets_table(page_table_sets(advice), advice, title="", devices=True)]),
        "rows": to_html([waits_by_table(advice)]),
        "count": len(listed_relations(advice)),
        "more": more,
        "moved": moved_tables_sentences(best) if best else [],
        "guide": best and move_guide(subject.advice.run.engine, {Role.SELECTED: advice.devices[0].device}),
    }


def _json(data: Mapping[str, Any]) -> str:
    """JSON that ends no element and starts no comment, whatever a recording is named."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(scripts: Iterable[str], style: str, connects: bool) -> str:
    """A content security policy that allows these texts by their hashes, and nothing from elsewhere."""
    parts = [
        "default-src 'none'",
        f"script-src {' '.join(map(source_hash, scripts))}",
        f"style-src {source_hash(style)}",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if connects else []),
    ]
    return "; ".join(parts)


def source_hash(text: str) -> str:
    """The hash by which a content security policy allows a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script(names: Iterable[str]) -> str:
    modules = [(FOLDER / f"{name}.js").read_text("utf-8") for name in names]
    return "\n".join(["'use strict';", "window.tierwise = {};", *modules])


def rate_cost_chart(subject: AdviceSurvey) -> dict[str, Any]:
    """Rate against cost, in Vega-Lite; the page fills the data in."""
    run = subject.advice.run
    chart: dict[str, Any] = json.loads((FOLDER / "chart.json").read_text("utf-8"))
    axes = chart["encoding"]
    axes["x"]["axis"]["title"] = f"Cost a month ({subject.currency})"
    axes["y"]["axis"]["title"] = (
        "Times as fast as recorded" if run.once else f"{run.unit.capitalize()} a second"
    )
    return chart
