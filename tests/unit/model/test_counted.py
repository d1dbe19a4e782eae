"""A count before its noun."""

from __future__ import annotations

import pytest

from tierwise.model import numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (numbers.counted_noun(1, "placement"), "1 placement"),
        (numbers.counted_noun(0, "run"), "0 runs"),
        (numbers.counted_noun(4096, "placement"), "4\u202f096 placements"),
        (numbers.counted_noun(1, "study", "studies"), "1 study"),
        (numbers.counted_noun(2, "study", "studies"), "2 studies"),
    ],
)
def test_a_single_thing_is_no_plural(text: str, words: str) -> None:
    assert text == words
