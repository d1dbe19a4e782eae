"""Usability of a recording, as texts."""

from __future__ import annotations

from tierwise.predict.usability import Usability
from tierwise.report.document import Text


def usability_texts(usability: Usability) -> list[Text]:
    """The verdict, then each remark with its remedy."""
    return [Text(sentence) for sentence in usability.sentences]
