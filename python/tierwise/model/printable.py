"""Text that a terminal shows and does not obey: names in recordings and results may be a stranger's."""

from __future__ import annotations

import unicodedata

_REPLACEMENT = "?"
_HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that command a terminal, hide or reorder text, or begin a line."""
_NO_CHARACTER = 0xFFFE
"""Low bits of the last two code points of each plane, which no text may have."""


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
    return "".join(_REPLACEMENT if _is_harmful(one) and one not in keep else one for one in text)


def capitalized(sentence: str) -> str:
    """The sentence with a capital first letter, and all others as they are."""
    return sentence[:1].upper() + sentence[1:]


def _is_harmful(one: str) -> bool:
    return unicodedata.category(one) in _HARMFUL or ord(one) & _NO_CHARACTER == _NO_CHARACTER
