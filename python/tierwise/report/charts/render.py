"""Charts to SVG for a page, and to PNG."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from tierwise.model.extras import alt, vl_convert
from tierwise.model.names import printable

_SCALE = 2.0
_KEPT = "\n\t\u2060"


def to_svg(chart: alt.LayerChart, name: str, description: str) -> str:
    """An SVG for embedding in a page.

    Args:
        chart: the chart to draw.
        name: unique in the page; ids inside the drawing begin with it.
        description: text that screen readers read in place of the drawing.
    """
    svg = vl_convert.vegalite_to_svg(_printable(chart.to_dict()))
    # Vega hides overlapping labels instead of omitting them, and prevents text selection.
    svg = re.sub(r'<text[^>]*opacity="0"[^>]*>[^<]*</text>', "", svg)
    svg = re.sub(r' (?:class|aria-[a-z]+|role|pointer-events|xmlns:xlink)="[^"]*"', "", svg)
    svg = _with_own_ids(svg, name)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)


def to_png(chart: alt.LayerChart) -> bytes:
    """A PNG at twice the drawing's size."""
    return bytes(vl_convert.vegalite_to_png(_printable(chart.to_dict()), scale=_SCALE))


def _printable(spec: Any) -> Any:
    """The specification with printable texts: a control character ends the process of the renderer."""
    match spec:
        case str():
            return printable(spec, _KEPT)
        case dict():
            return {_printable(key): _printable(value) for key, value in spec.items()}
        case list() | tuple():
            return [_printable(value) for value in spec]
        case _:
            return spec


def _with_own_ids(svg: str, name: str) -> str:
    """Make ids reproducible and unique in a page; Vega's counter continues through the whole process."""
    numbers = {old: number for number, old in enumerate(re.findall(r' id="([^"]+)"', svg))}
    return re.sub(r'( id="|url\(#)([^")]+)', lambda m: f"{m[1]}{name}-{numbers[m[2]]}", svg)
