"""A document as HTML: a fragment for notebooks, or one page that opens offline."""

from __future__ import annotations

from markupsafe import Markup, escape

from tierwise.report.document import Cell, Document, Table, Text, Tone
from tierwise.report.page import environment


def to_html(document: Document) -> Markup:
    """A fragment: paragraphs and tables, everything in them escaped."""
    blocks = [_text(block) if isinstance(block, Text) else _table(block) for block in document]
    return Markup("\n").join(blocks)


def to_html_page(document: Document, title: str) -> str:
    """The document as one page."""
    return environment().get_template("document.html.j2").render(title=title, content=to_html(document))


def _text(block: Text) -> Markup:
    name = "h1" if block.tone is Tone.HEADLINE else "p"
    kind = Markup(' class="caveat"') if block.tone is Tone.WARNING else ""
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), kind, block.text)


def _table(table: Table) -> Markup:
    heads = Markup("").join(Markup("<th>{}</th>").format(column.name) for column in table.columns)
    rows = Markup("\n").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cell(cell, number) for number, cell in enumerate(row)))
        for row in table.rows
    )
    caption = Markup("<h3>{}</h3>\n").format(table.title) if table.title else Markup("")
    return Markup(
        '{}<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="io">'
        "<thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>"
    ).format(caption, table.title or "table", heads, rows)


def _cell(cell: Cell, number: int) -> Markup:
    lines = Markup("<br>").join(escape(line) for line in [cell.text, *(one.text for one in cell.below)])
    return Markup('<th scope="row">{}</th>' if number == 0 else "<td>{}</td>").format(lines)
