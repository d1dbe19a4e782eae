"""An answer as one HTML file that needs nothing else: no network, no script, charts as vectors inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import altair as alt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tierwise.report import numbers
from tierwise.report.answer import Answer, Comparison
from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, Figure, Look, figures_of, figures_of_sweep, to_svg
from tierwise.report.lap_tables import checksum, level_text, repeats
from tierwise.report.measures import COUNTER_NAMES, kind_of, title_of
from tierwise.report.palette import DARK, LIGHT, css_declarations, placement_names
from tierwise.report.paper import PaperRow, swept_rows
from tierwise.report.summary import PERCENTILES, Summary
from tierwise.report.sweeps import SweepResult

_HERE = Path(__file__).parent
_OF_RUNS_ONLY = {"rows", "reserved bytes", "data bytes", "index bytes", "unused bytes"}


@dataclass(frozen=True)
class Drawing:
    """One figure for wide and for narrow screens."""

    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class Section:
    """A comparison and what the template would otherwise have to work out."""

    id: str
    comparison: Comparison
    figures: dict[str, Drawing]
    colours: dict[str, str]

    @property
    def has_io(self) -> bool:
        """Whether any placement knows its I/O."""
        return any(row.summary.io or row.summary.device_io for row in self.comparison.rows)

    @property
    def has_latency(self) -> bool:
        """Whether any placement knows the latency of its transactions."""
        return any(row.summary.latency for row in self.comparison.rows)

    @property
    def counted(self) -> list[Summary]:
        """Placements that counted anything."""
        summaries = [row.summary for row in self.comparison.rows]
        return [one for one in summaries if any(name in one.medians for name in COUNTER_NAMES)]

    @property
    def scores(self) -> list[str]:
        """Metrics that the workload defines."""
        return list(dict.fromkeys(name for row in self.comparison.rows for name in row.summary.scores))

    @property
    def all_within(self) -> bool:
        """Whether every emulated device kept its bound in every run."""
        return all(late.within for late in self.comparison.validity.deadline_overrun)

    @property
    def sampling_error(self) -> float | None:
        """Greatest sampling error of a wait share."""
        errors = [row.summary.sampling_error for row in self.comparison.rows]
        return max((error for error in errors if error is not None), default=None)


@dataclass(frozen=True)
class SweepSection:
    """A sweep and its drawings."""

    id: str
    sweep: SweepResult
    figures: dict[str, Drawing]
    paper: list[PaperRow]


def render_page(answer: Answer) -> str:
    """The whole report as one HTML document."""
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            answer=answer,
            sections=sections_of(answer),
            sweeps=sweep_sections_of(answer),
            unfinished=unfinished(answer),
            brief=False,
        )
    )


def environment() -> Environment:
    """Templates, and what all of them use."""
    made = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters["whole"] = _keep_names_whole
    made.globals.update(
        percentiles=list(PERCENTILES),
        n=numbers,
        light=css_declarations(LIGHT),
        dark=css_declarations(DARK),
        css=Markup((_HERE / "page.css").read_text("utf-8")),
        title_of=title_of,
        kind_of=kind_of,
        checksum=checksum,
        repeats=repeats,
        level_text=level_text,
        counter_names=COUNTER_NAMES,
        lap_counter_names=[name for name in COUNTER_NAMES if name not in _OF_RUNS_ONLY],
    )
    return made


def unfinished(answer: Answer) -> str:
    """A sentence for a study with runs still to come, or nothing."""
    done, planned = answer.conditions.finished, answer.conditions.planned
    return f"{done} of {planned} planned runs have ended." if planned and done < planned else ""


def sections_of(answer: Answer, prefix: str = "", brief: bool = False) -> list[Section]:
    """One section a comparison; ``brief`` leaves it at the chief figures. Ids begin with ``prefix``."""
    return [
        Section(
            id=(name := f"{prefix}c{number}"),
            comparison=one,
            figures={key: _drawn(name, figure) for key, figure in figures_of(one, brief).items()},
            colours=placement_names([row.placement for row in one.rows], one.baseline),
        )
        for number, one in enumerate(answer.comparisons, start=1)
    ]


def sweep_sections_of(answer: Answer, prefix: str = "") -> list[SweepSection]:
    """One section a sweep. Ids begin with ``prefix``."""
    return [
        SweepSection(
            id=(name := f"{prefix}s{number}"),
            sweep=one,
            figures={
                key: _drawn(name, figure)
                for key, figure in figures_of_sweep(one, answer.study.baseline).items()
            },
            paper=swept_rows(one, answer.figures_along(one), answer.study),
        )
        for number, one in enumerate(answer.sweeps, start=1)
    ]


def _drawn(section: str, figure: Figure) -> Drawing:
    return drawing(section, figure.name, figure.description, figure.draw)


def drawing(section: str, name: str, description: str, draw: Callable[[Look], alt.LayerChart]) -> Drawing:
    """A chart in both widths; ids inside begin with ``section`` and ``name``, unique in a page."""
    wide, narrow = (
        Markup(to_svg(draw(look), f"{section}-{name}-{size}", description))
        for size, look in (("wide", PAGE_WIDE), ("narrow", PAGE_NARROW))
    )
    return Drawing(wide, narrow)


def _keep_names_whole(text: str) -> str:
    """No line break inside a range such as ``7.2–8.6`` or a name such as ``all-hdd``."""
    return text.replace("\u2013", "\u2060\u2013\u2060").replace("-", "-\u2060")
