"""A document as HTML: a fragment for notebooks, or one page that opens offline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tierwise.model.names import printable
from tierwise.report import document as doc
from tierwise.report.palette import DARK, LIGHT, css_declarations

_HERE = Path(__file__).parent
PAGE_STYLE = "\n".join(
    [
        f":root {{ {css_declarations(LIGHT)} }}",
        f"@media (prefers-color-scheme: dark) {{ @media screen {{ :root {{ {css_declarations(DARK)} }} }} }}",
        (_HERE / "page.css").read_text("utf-8"),
    ]
)
"""The style of every page with its colours; on paper they are those of the light theme."""
_KEPT = "\n\t\u2060"
_COLUMNS_OF_CARDS = range(5, 10)
"""Tables shown as one card per row on a narrow screen; those with fewer columns fit, wider ones scroll."""
_CLASSES = {
    doc.Tone.HEADLINE: "finding",
    doc.Tone.WARNING: "caveat",
    doc.Tone.QUIET: "note",
    doc.Tone.BETTER: "good",
    doc.Tone.WORSE: "bad",
}
_CELL_CLASSES = {doc.Tone.WARNING: "bad", doc.Tone.WORSE: "bad", doc.Tone.BETTER: "good"}


def to_html(document: doc.Document) -> Markup:
    """A fragment, everything in it escaped."""
    return Markup(printable(_blocks(document, "document", 2), _KEPT))


def to_html_page(page: doc.Page) -> str:
    """A complete page. The first headline of its header is its only ``h1``."""
    header = list(page.header)
    first = next(
        (block for block in header if isinstance(block, doc.Text) and block.tone is doc.Tone.HEADLINE), None
    )
    if first:
        header.remove(first)
        header.insert(0, first)
    top = _tag("h1", without_line_breaks(first.text), "headline") if first else Markup()
    made = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    html = made.get_template("page.html.j2").render(
        title=page.title,
        header=top + _blocks(header[1:] if first else header, "header", 2),
        body=_blocks(page.body, "page", 2),
        footer=page.footer,
        style=Markup(PAGE_STYLE),
    )
    return printable(html, _KEPT)


def _blocks(blocks: Iterable[doc.Block], within: str, level: int) -> Markup:
    """Blocks of a section whose id is ``within`` and whose subtitles have a level."""
    return Markup("\n").join(_html(block, within, level) for block in blocks)


def _html(block: doc.Block, within: str, level: int) -> Markup:
    match block:
        case doc.Text():
            text = without_line_breaks(block.text) if block.tone is doc.Tone.HEADLINE else escape(block.text)
            return _tag("p", text, _CLASSES.get(block.tone, ""))
        case doc.Bullets():
            return _bullets(block)
        case doc.FactList():
            row = Markup("<div><dt>{}</dt><dd>{}</dd></div>")
            return _tag("dl", _joined(row.format(name, text) for name, text in block.facts.items()))
        case doc.Table():
            return _table(block, level)
        case doc.Chart():
            return _chart(block, within)
        case doc.Section():
            return _section(block, within, level)


def _bullets(block: doc.Bullets) -> Markup:
    if not block.targets:
        return _tag("ul", _joined(_tag("li", item) for item in block.items))
    link = Markup('<li><a href="#{}">{}</a>{}</li>')
    parts = [item.partition(": ") for item in block.items]
    links = [
        link.format(target, f"{head}{colon}", rest)
        for target, (head, colon, rest) in zip(block.targets, parts, strict=True)
    ]
    return _tag("nav", _tag("ul", _joined(links)))


def _chart(block: doc.Chart, within: str) -> Markup:
    # These imports take half a second, and most documents have no chart.
    from tierwise.report.charts import PAGE_NARROW, PAGE_WIDE, to_svg

    name = f"{within}-{block.name}"
    drawings = [
        _tag("div", Markup(to_svg(block.draw(look), f"{name}-{size}", block.description)), size)
        for size, look in (("wide", PAGE_WIDE), ("narrow", PAGE_NARROW))
    ]
    caption = _tag("figcaption", block.caption) if block.caption else Markup()
    return Markup('<figure class="chart" id="{}">{}{}</figure>').format(name, _joined(drawings), caption)


def _section(block: doc.Section, within: str, level: int) -> Markup:
    inner = _blocks(block.blocks, block.id or within, min(level + 1, 4))
    if block.folded:
        return Markup("<details><summary>{}</summary>{}</details>").format(block.title, inner)
    label = _tag("p", block.label, "eyebrow") if block.label else Markup()
    title = _tag(f"h{level}", without_line_breaks(block.title)) if block.title else Markup()
    name = ("article" if level == 2 else "section") if block.title and level < 4 else "div"
    identity = Markup(' id="{}"').format(block.id) if block.id else ""
    return Markup("<{0}{1}>{2}{3}{4}</{0}>").format(name, identity, label, title, inner)


def _table(block: doc.Table, level: int) -> Markup:
    many = len(block.columns)
    kind = "cards" if many in _COLUMNS_OF_CARDS else "wide-table" if many >= _COLUMNS_OF_CARDS.stop else ""
    heads = _joined(_head(column) for column in block.columns)
    rows = _joined(_tag("tr", _joined(_cells(block.columns, row))) for row in block.rows)
    caption = _tag(f"h{min(level + 1, 4)}", block.title) if block.title else Markup()
    table = Markup('<table class="{}"><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table>').format(
        kind, heads, rows
    )
    frame = Markup('{}<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>')
    return frame.format(caption, block.title or block.columns[0].name, table)


def _head(column: doc.Column) -> Markup:
    return _tag("th", column.name.replace("\n", " "), "" if column.is_figure else "text")


def _cells(columns: Iterable[doc.Column], row: Iterable[doc.Cell]) -> Iterator[Markup]:
    for number, (column, cell) in enumerate(zip(columns, row, strict=True)):
        below = _joined(_tag("small", line.text) for line in cell.below)
        text = Markup("<br>").join(cell.text.split("\n"))
        shown = _tag("b", text) if below and number else text
        if number == 0:
            yield Markup('<th scope="row">{}{}{}</th>').format(_dot(cell), shown, below)
            continue
        classes = " ".join(
            [
                *([] if column.is_figure else ["text"]),
                *(["words"] if column.kind is doc.ColumnKind.WORDS else []),
                *([_CELL_CLASSES[cell.tone]] if cell.tone in _CELL_CLASSES else []),
            ]
        )
        label = column.name.replace("\n", " ")
        content = _dot(cell) + shown + below
        yield Markup('<td class="{}" data-label="{}">{}</td>').format(classes, label, content)


def _dot(cell: doc.Cell) -> Markup:
    dot = Markup('<i class="dot" style="background:var(--{})"></i>')
    return dot.format(cell.colour) if cell.colour else Markup()


def _tag(name: str, content: str, kind: str = "") -> Markup:
    attribute = Markup(' class="{}"').format(kind) if kind else ""
    return Markup("<{0}{1}>{2}</{0}>").format(name, attribute, content)


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


def without_line_breaks(text: str) -> str:
    """No line break inside a range such as ``7.2–8.6`` or a name such as ``all-hdd``."""
    return text.replace("\u2013", "\u2060\u2013\u2060").replace("-", "-\u2060")
