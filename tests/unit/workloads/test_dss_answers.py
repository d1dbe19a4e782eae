"""Answers of the 22 queries against the published ones."""

from __future__ import annotations

from decimal import Decimal

import dss_expected as answers


def test_a_wrong_answer_is_told_from_the_published_one() -> None:
    assert answers.problems(6, [(Decimal("123141078.2283"),)]) == []
    assert answers.problems(17, [(348406.0542857,)]) == []
    assert "for 123141078.23" in answers.problems(6, [(123141079.0,)])[0]
    assert answers.problems(4, [("1-URGENT", 10594)]) == ["q4: 1 rows for 5"]
    off_by_one = [("1-URGENT", 10594), ("", 10477), ("", 10410), ("", 10556), ("5-LOW", 10487)]
    assert answers.problems(4, off_by_one) == ["q4: sum, column 2: 52524 for 52523"]
