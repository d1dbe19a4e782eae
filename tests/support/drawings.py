"""Charts with and without their drawings, which take most of the time of a page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from altair.utils import schemapi
from markupsafe import Markup

from tierwise.report.charts import PAGE_WIDE, chart_style
from tierwise.report.document import Chart
from tierwise.report.render import html

_REAL = html._chart, chart_style.vl_convert, schemapi.DEBUG_MODE
_PNG = SimpleNamespace(vegalite_to_png=lambda *_, **__: b"\x89PNG")


def _empty(block: Chart, within: str) -> Markup:
    block.draw(PAGE_WIDE)
    drawing = Markup('<svg role="img" aria-label="{}"></svg>').format(block.description)
    return Markup('<figure class="chart" id="{}">{}</figure>').format(f"{within}-{block.name}", drawing * 2)


@contextlib.contextmanager
def _with(chart: object, vl_convert: object, debug_mode: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "_chart", chart)
        patch.setattr(chart_style, "vl_convert", vl_convert)
        patch.setattr(schemapi, "DEBUG_MODE", debug_mode)
        yield


def left_empty() -> contextlib.AbstractContextManager[None]:
    """Charts are built in one width, and neither compared with their schema nor drawn."""
    return _with(_empty, _PNG, False)


def drawn() -> contextlib.AbstractContextManager[None]:
    """Charts are drawn, also within :func:`left_empty`."""
    return _with(*_REAL)
