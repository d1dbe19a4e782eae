"""The curve of the rate over the memory on the page of an advice."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from support.fake_memory import with_memory
from support.fake_replay import predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.model import numbers
from tierwise.predict import Estimate
from tierwise.report.advice import advice_page, survey_advice
from tierwise.report.advice.advice_html import MemoryPoint, memory_curve


def points(*gib: int) -> list[MemoryPoint]:
    return [
        MemoryPoint(
            size_gib << 30,
            Estimate(value=100.0 * size_gib, low=90.0 * size_gib, high=120.0 * size_gib),
            size_gib >= 4,
        )
        for size_gib in gib
    ]


def test_more_memory_is_further_right_and_a_higher_rate_further_up() -> None:
    drawn = ElementTree.fromstring(memory_curve(points(1, 2, 4, 8), "transactions"))
    dots = [(float(element.get("cx", 0)), float(element.get("cy", 0))) for element in drawn.iter("circle")]
    assert dots == sorted(dots) and [down for _, down in dots] == sorted((y for _, y in dots), reverse=True)
    (fits,) = [element for element in drawn.iter("line") if element.get("class") == "fits"]
    assert float(fits.get("x1", 0)) == dots[2][0], "all fits from 4 GiB on"
    words = [element.text for element in drawn.iter("text")]
    assert "all fits" in words and numbers.size_text(1 << 30) in words


def test_one_point_is_no_curve_and_many_labels_do_not_overlap() -> None:
    assert memory_curve(points(4), "transactions") == ""
    many = memory_curve(points(*range(1, 60)), "transactions")
    places = [float(place) for place in re.findall(r'<text x="([\d.]+)"', many)]
    assert all(after - before >= 60 for before, after in pairwise(places))


def test_the_page_has_it_if_the_advice_does() -> None:
    pages = []
    for of in (predictor(), with_memory()):
        advice = advise(of, AdviceOptions(["nvme-dc"]))
        pages.append(advice_page(survey_advice(of, advice, PaymentTerms(), Path("shop"))))
    assert ['id="memory"' in page for page in pages] == [False, True]
    assert "holds all tables and indexes" in pages[1] and "$/month" in pages[1]
    assert "No size of memory gains as much as the recommended move." in pages[1]
