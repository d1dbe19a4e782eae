"""An answer as one HTML file that needs nothing else: no network, no script, charts as vectors inside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tierwise.report import numbers
from tierwise.report.answer import Answer, Comparison
from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, Figure, figures_of, to_svg
from tierwise.report.palette import DARK, LIGHT, css_declarations, placement_names
from tierwise.report.summary import PERCENTILES

_HERE = Path(__file__).parent


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
    def all_within(self) -> bool:
        """Whether every emulated device kept its bound in every run."""
        return all(late.within for late in self.comparison.validity.lateness)

    @property
    def sampling_error(self) -> float | None:
        """Greatest sampling error of a wait share."""
        errors = [row.summary.sampling_error for row in self.comparison.rows]
        return max((error for error in errors if error is not None), default=None)


def render_page(answer: Answer) -> str:
    """The whole report as one HTML document."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["whole"] = _keep_names_whole
    return environment.get_template("page.html.j2").render(
        answer=answer,
        sections=[_section(f"c{number}", one) for number, one in enumerate(answer.comparisons, start=1)],
        unfinished=unfinished(answer),
        percentiles=list(PERCENTILES),
        n=numbers,
        light=css_declarations(LIGHT),
        dark=css_declarations(DARK),
        css=Markup((_HERE / "page.css").read_text("utf-8")),
    )


def unfinished(answer: Answer) -> str:
    """A sentence for a study with runs still to come, or nothing."""
    done, planned = answer.conditions.finished, answer.conditions.planned
    return f"{done} of {planned} planned runs have ended." if planned and done < planned else ""


def _section(name: str, comparison: Comparison) -> Section:
    return Section(
        id=name,
        comparison=comparison,
        figures={key: _drawing(name, figure) for key, figure in figures_of(comparison).items()},
        colours=placement_names([row.placement for row in comparison.rows], comparison.baseline),
    )


def _drawing(section: str, figure: Figure) -> Drawing:
    wide, narrow = (
        Markup(to_svg(figure.draw(look), f"{section}-{figure.name}-{size}", figure.description))
        for size, look in (("wide", PAGE_WIDE), ("narrow", PAGE_NARROW))
    )
    return Drawing(wide, narrow)


def _keep_names_whole(text: str) -> str:
    """No line break inside a range such as ``7.2–8.6`` or a name such as ``all-hdd``."""
    return text.replace("\u2013", "\u2060\u2013\u2060").replace("-", "-\u2060")
