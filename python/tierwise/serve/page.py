"""The page of a recording with its live part, and the list of several recordings."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined

from tierwise.advise import advise
from tierwise.predict import Predictor
from tierwise.report.document import Page, Section
from tierwise.report.recording.advice import advice_document
from tierwise.report.render import to_html_page
from tierwise.serve.guard import POLICY

if TYPE_CHECKING:
    from tierwise.serve.recordings import Asked

_LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Recordings</title></head>
<body><h1>Recordings</h1><ul>
{% for name in names %}<li><a href="{{ loop.index }}/">{{ name }}</a></li>
{% endfor %}</ul></body></html>
"""
_INLINE = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)


def make_page(path: Path, predictor: Predictor, asked: Asked, sliders: Sequence[Mapping[str, Any]]) -> str:
    """The page of a recording, as ``tierwise advise -o`` writes it, with sliders."""
    advice = advise(predictor, list(asked.devices), asked.budget_usd, asked.goal)
    return to_html_page(Page(path.name, [], [Section("", advice_document(advice))]))


def list_page(names: Sequence[str]) -> str:
    """The list of several recordings: names of their folders, each with the address of its page."""
    made = Environment(autoescape=True, undefined=StrictUndefined)
    return made.from_string(_LIST).render(names=names)


def policy_for(html: str) -> str:
    """The content security policy of a page: its own inline scripts and styles, questions to its server.

    Images may be ``data:`` and ``blob:``, which its exports are made of.
    """
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, text in _INLINE.findall(html):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    sources = {f"{kind}-src": " ".join(dict.fromkeys(found)) or "'none'" for kind, found in hashes.items()}
    allowed = {**sources, "img-src": "data: blob:", "connect-src": "'self'"}
    return "; ".join([POLICY, *(f"{name} {value}" for name, value in allowed.items())])
