"""Charts with and without their drawings, which take most of the time of a page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from html import escape
from types import SimpleNamespace

import pytest
from altair.utils import schemapi

from tierwise.report import charts
from tierwise.report.charts import render

_REAL = charts.to_svg, render.vl_convert, schemapi.DEBUG_MODE
_PNG = SimpleNamespace(vegalite_to_png=lambda *_, **__: b"\x89PNG")


def _empty(_chart: object, _name: str, description: str) -> str:
    return f'<svg role="img" aria-label="{escape(description)}"></svg>'


@contextlib.contextmanager
def _with(to_svg: object, vl_convert: object, debug_mode: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "to_svg", to_svg)
        patch.setattr(render, "vl_convert", vl_convert)
        patch.setattr(schemapi, "DEBUG_MODE", debug_mode)
        yield


def left_empty() -> contextlib.AbstractContextManager[None]:
    """Charts are built, and neither compared with their schema nor drawn."""
    return _with(_empty, _PNG, False)


def drawn() -> contextlib.AbstractContextManager[None]:
    """Charts are drawn, also within :func:`left_empty`."""
    return _with(*_REAL)
