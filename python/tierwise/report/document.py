"""A document: texts, tables and charts in order; tierwise.report.render shows it in several formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tierwise.model import numbers
from tierwise.model.statistics import Interval
from tierwise.predict import Estimate

if TYPE_CHECKING:
    import altair as alt

    from tierwise.report.charts.chart_style import ChartLook


class Tone(StrEnum):
    """Emphasis of a text."""

    PLAIN = "plain"
    HEADLINE = "headline"
    BETTER = "better"
    WORSE = "worse"
    WARNING = "warning"
    QUIET = "quiet"


@dataclass(frozen=True)
class Text:
    """A paragraph, or a line of a cell."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Title(Text):
    """The title of a section, in formats that have no sections."""


@dataclass(frozen=True)
class Cell:
    """One cell: text for people, and a figure for programs.

    Attributes:
        text: the figure or words.
        tone: tone of the text.
        below: further lines, such as an interval.
        value: the figure in the unit of its column; ``None`` if there is only text.
        low: lower bound of its 95 % interval.
        high: upper bound.
        colour: name of its placement's colour in charts; empty if it is not a placement.
    """

    text: str
    tone: Tone = Tone.PLAIN
    below: tuple[Text, ...] = ()
    value: float | None = None
    low: float | None = None
    high: float | None = None
    colour: str = ""


class ColumnKind(StrEnum):
    """Layout of a column."""

    FIGURE = "figure"
    """Right-aligned, never cut."""
    NAME = "name"
    """Text that a user types: never cut or folded."""
    WORDS = "words"
    """Text that is folded if it does not fit."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: ColumnKind = ColumnKind.FIGURE

    @property
    def is_figure(self) -> bool:
        """Whether it contains figures."""
        return self.kind is ColumnKind.FIGURE


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns."""

    columns: Sequence[Column]
    rows: list[list[Cell]] = field(default_factory=list)
    title: str = ""

    def add(self, *cells: Cell | str, tone: Tone = Tone.PLAIN) -> None:
        """Add a row; a text is a cell of that tone."""
        self.rows.append([Cell(cell, tone) if isinstance(cell, str) else cell for cell in cells])

    def only(self, *names: str) -> Table:
        """The table with some of its columns, in its order."""
        kept = [number for number, column in enumerate(self.columns) if column.name in names]
        rows = [[row[number] for number in kept] for row in self.rows]
        return Table([self.columns[number] for number in kept], rows, self.title)


@dataclass(frozen=True)
class Bullets:
    """A list of sentences. ``targets`` are ids of the linked sections, if any."""

    items: Sequence[str]
    targets: Sequence[str] = ()


@dataclass(frozen=True)
class FactList:
    """Names with their values."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class Chart:
    """A drawing. ``description`` is its text form; ``draw`` is called for each width."""

    name: str
    description: str
    draw: Callable[[ChartLook], alt.LayerChart]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """Blocks under a title.

    Attributes:
        title: empty for none.
        blocks: in order.
        id: unique in the document; names of charts derive from it.
        label: subject of the section, above its title.
        folded: whether the section is collapsed at first.
    """

    title: str
    blocks: Sequence[Block]
    id: str = ""
    label: str = ""
    folded: bool = False


Block = Text | Bullets | FactList | Table | Chart | Section
Document = Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A document for a whole page: the answer in ``header``, the evidence in ``body``."""

    title: str
    header: Document
    body: Document
    footer: str = ""


def flat_blocks(document: Document) -> Iterator[Text | Table]:
    """Texts and tables in order, for formats that have no sections and no charts."""
    for block in document:
        match block:
            case Section():
                yield from (Title(title, Tone.HEADLINE) for title in (block.label, block.title) if title)
                yield from flat_blocks(block.blocks)
            case Bullets():
                yield from (Text(f"- {item}") for item in block.items)
            case FactList():
                yield from (Text(f"{name}: {text}") for name, text in block.facts.items())
            case Text() | Table():
                yield block
            case Chart():
                pass


def paragraphs(lines: Iterable[str], tone: Tone = Tone.PLAIN) -> list[Block]:
    """A paragraph for each line that is not empty."""
    return [Text(line, tone) for line in lines if line]


def empty_table(
    words: Iterable[str],
    figures: Iterable[str],
    title: str = "",
    names: Iterable[str] = (),
    after: Iterable[str] = (),
) -> Table:
    """An empty table with columns of names, then of words, then of figures, then of further words."""
    headings = {ColumnKind.NAME: names, ColumnKind.WORDS: words, ColumnKind.FIGURE: figures}
    columns = [Column(name, kind) for kind, several in headings.items() for name in several]
    return Table([*columns, *(Column(name, ColumnKind.WORDS) for name in after)], title=title)


def figure_cell(value: float | None, shown: Callable[[float], str]) -> Cell:
    """A figure without an interval; a dash if unknown."""
    return Cell(numbers.NONE) if value is None else Cell(shown(value), value=value)


def estimate_cell(estimate: Estimate | Interval | None, shown: Callable[[float], str]) -> Cell:
    """A figure with its interval below it; a dash if unknown."""
    if estimate is None:
        return Cell(numbers.NONE)
    if isinstance(estimate, Interval):
        value, text = estimate.estimate, numbers.with_bound_sign(estimate, shown(estimate.estimate))
        has_ends = (
            estimate.low is not None
            and estimate.high is not None
            and numbers.with_bound_sign(estimate, "") == ""
        )
    else:
        value, text, has_ends = estimate.value, shown(estimate.value), True
    if not has_ends or estimate.low is None or estimate.high is None:
        return Cell(text, value=value)
    ends = Text(numbers.range_text(shown(estimate.low), shown(estimate.high)), Tone.QUIET)
    return Cell(text, below=(ends,), value=value, low=estimate.low, high=estimate.high)
