"""Figures as people read them: one form of a percentage, and a minus sign before what is below 0."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tierwise
from tierwise.model import numbers

GENERATED = {"accuracy_report.py"}
"""Writes the Markdown pages of the measured error, whose cells have the form of one table."""


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (numbers.percent_text(0.78), "78\u00a0%"),
        (numbers.percent_text(0.0612), "6.1\u00a0%"),
        (numbers.percent_text(-0.56), "−56\u00a0%"),
        (numbers.signed_percent_text(-0.324), "−32\u00a0%"),
        (numbers.signed_percent_text(-0.0002), "+0.0\u00a0%"),
        (numbers.signed_percent_text(0.12), "+12\u00a0%"),
        (numbers.significant_text(-12.34), "−12.3"),
        (numbers.significant_text(-12345.6), "−12\u202f300"),
        (numbers.significant_text(-0.0001), ">−0.001"),
        (numbers.significant_text(0.0001), "<0.001"),
        (numbers.count_text(-1234), "−1\u202f234"),
        (numbers.amount_text(-0.55), "−0.55"),
        (numbers.amount_text(-1200), "−1\u202f200"),
    ],
)
def test_figures(shown: str, expected: str) -> None:
    assert shown == expected


def test_one_form_of_percentages() -> None:
    """Python's own ``%`` format has no space before the sign and another number of digits."""
    files = [file for file in Path(tierwise.__file__).parent.rglob("*.py") if file.name not in GENERATED]
    own = re.compile(r"\{[^{}]*:[+,]?\.\d%\}")
    assert files and [file.name for file in files if own.search(file.read_text("utf-8"))] == []
