"""Text that a terminal shows and does not obey: names in recordings and results may be a stranger's."""

from __future__ import annotations

import unicodedata

_REPLACEMENT = "?"
_HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that command a terminal, hide or reorder text, or begin a line."""


def printable(text: str, keep: str = "") -> str:
    """The text with a question mark for each control character, direction mark and line separator.

    Args:
        text: any.
        keep: characters that stay, such as a line feed.
    """
    other = text
    for one in keep:
        other = other.replace(one, "")
    if other.isascii() and other.isprintable():
        return text
    return "".join(
        _REPLACEMENT if unicodedata.category(one) in _HARMFUL and one not in keep else one for one in text
    )
