"""Every chart of a report, drawn, for any outcome of a study; unit tests leave drawings empty."""

from __future__ import annotations

import re

import pytest

from support.html import Page
from support.outcomes import OUTCOMES
from support.results_factory import INFO
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.report.study.study_page import study_answer_page
from tierwise.report.render import to_html_page


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_any_outcome_is_drawn(outcome: str) -> None:
    page = Page(to_html_page(study_answer_page(build_study_answer(OUTCOMES[outcome], INFO))))
    drawings = page.all("svg")
    assert len(drawings) % 2 == 0 and all(float(svg["width"] or 0) > 100 for svg in drawings)
    assert not re.search(r"\bNone\b|\bnan\b|Undefined", page.text)
