"""A document for a terminal, or as Markdown, CSV or HTML."""

from tierwise.report.render.csv import to_csv
from tierwise.report.render.html import PAGE_STYLE, to_html, to_html_page, unbroken
from tierwise.report.render.markdown import to_markdown
from tierwise.report.render.terminal import to_rich

__all__ = [
    "PAGE_STYLE",
    "to_csv",
    "to_html",
    "to_html_page",
    "to_markdown",
    "to_rich",
    "unbroken",
]
