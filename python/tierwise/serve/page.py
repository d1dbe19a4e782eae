"""The page of a recording with its live part, the list of several recordings, and their policies."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from tierwise.advise import AdviceOptions
from tierwise.predict import Predictor
from tierwise.report.advice import advice_page, subject
from tierwise.report.advice.page import source_hash
from tierwise.report.render import PAGE_STYLE
from tierwise.serve.guard import POLICY
from tierwise.serve.refinement import MOST_SEEDS
from tierwise.serve.sliders import Slider

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {{ style_hash }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Recordings – tierwise</title><style>{{ style }}</style></head>
<body><header><p class="eyebrow"><span>tierwise</span> serve</p><h1>Recordings</h1></header>
<main><ul>
{% for name in names %}<li><a href="{{ loop.index }}/">{{ name }}</a></li>
{% endfor %}</ul></main></body></html>
"""


def make_page(path: Path, predictor: Predictor, options: AdviceOptions, sliders: Sequence[Slider]) -> str:
    """The page of a recording, as ``tierwise advise -o`` writes it, with sliders.

    Args:
        path: folder of the recording, for commands to type.
        predictor: of the recording.
        options: of the advice.
        sliders: of the live part.
    """
    predictor.replayer.remember()  # the page needs the placements that the advice ranks
    advice = options.advise(predictor)
    live = {"ask": "ask", "most_seeds": MOST_SEEDS, "sliders": sliders}
    return advice_page(subject(predictor, advice, options.terms, path, options.fresh), live)


def list_page(names: Sequence[str]) -> str:
    """The list of several recordings: names of their folders, each a link to its page."""
    style = f"{PAGE_STYLE}\nmain {{ padding-top: 1.5rem; }}"
    made = Environment(autoescape=True, undefined=StrictUndefined)
    return made.from_string(_LIST).render(names=names, style=Markup(style), style_hash=source_hash(style))


def policy_of(page: str) -> str:
    """The content security policy for the header of a page: its own, and no frame around it."""
    own = _META.search(page)
    return f"{html.unescape(own[1])}; frame-ancestors 'none'" if own else POLICY
