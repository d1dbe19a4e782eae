"""A document for a terminal, or as Markdown, CSV or HTML."""

from tierwise.report.render.html import PAGE_STYLE, to_html, to_html_page, without_line_breaks
from tierwise.report.render.text import to_csv, to_markdown, to_rich

__all__ = ["PAGE_STYLE", "to_csv", "to_html", "to_html_page", "to_markdown", "to_rich", "without_line_breaks"]
