"""Names from users and recordings: suggested, checked as parts of paths, printed without obeying."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

from tierwise.model.errors import TierwiseError

_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")
_REPLACEMENT = "?"
_HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that command a terminal, hide or reorder text, or begin a line."""
_NO_CHARACTER = 0xFFFE
"""Low bits of the last two code points of each plane, which no text may have."""


def printable(text: str, keep: str = "") -> str:
    """The text with a question mark for each control character, direction mark and line separator."""
    other = text
    for character in keep:
        other = other.replace(character, "")
    if other.isascii() and other.isprintable():
        return text
    return "".join(
        _REPLACEMENT if _is_harmful(character) and character not in keep else character for character in text
    )


def capitalized(sentence: str) -> str:
    """The sentence with a capital first letter, and all others as they are."""
    return sentence[:1].upper() + sentence[1:]


def group_by_key(pairs: Iterable[tuple[_KeyT, _ValueT]]) -> dict[_KeyT, list[_ValueT]]:
    """All values of each name or other key; keys and values in the order of the pairs."""
    values: dict[_KeyT, list[_ValueT]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def sum_by_key(pairs: Iterable[tuple[_KeyT, float]]) -> dict[_KeyT, float]:
    """The sum of the values of each name or other key, in the order of the pairs."""
    sums: dict[_KeyT, float] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0.0) + value
    return sums


def join_words(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _is_harmful(character: str) -> bool:
    return unicodedata.category(character) in _HARMFUL or ord(character) & _NO_CHARACTER == _NO_CHARACTER


def split_names(text: str) -> list[str]:
    """The non-empty names of a comma-separated list."""
    return [name for part in text.split(",") if (name := part.strip())]


def nearest_names(name: str, known: Iterable[str], count: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """Up to ``count`` known names that resemble the unknown one in any case, most similar first.

    ``cutoff`` is the least similarity, 1 for equal names.
    """
    spelled = group_by_key((other.casefold(), other) for other in known)
    near = difflib.get_close_matches(name.casefold(), list(spelled), n=count, cutoff=cutoff)
    return [other for folded in near for other in spelled[folded]][:count]


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str, synonyms: Mapping[str, str] | None = None
) -> str:
    """The fix for an unknown name of a list too long to print; ``otherwise`` if none is similar.

    ``synonyms`` maps other words for a known name to it; they come before names that are merely similar.
    """
    meant = (synonyms or {}).get(name.lower())
    near = [meant] if meant else nearest_names(name, known)
    return f"did you mean {near[0]}?" if near else otherwise


def unknown_name_fix(name: str, known: Collection[str], synonyms: Mapping[str, str] | None = None) -> str:
    """The fix for an unknown name of a short list: the most similar one, if any, and all."""
    names = f"use one of {', '.join(known)}"
    return " ".join(filter(None, [did_you_mean(name, known, "", synonyms), names]))


FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
"""At most 64 letters, digits, ``_``, ``-`` and ``.``; the first is neither ``-`` nor ``.``."""

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+-]{0,199}")
"""A name, or settings and their values."""


def path_below(directory: Path, *parts: str) -> Path:
    """The path of a file or directory below ``directory``, one name after the other."""
    for part in parts:
        if not _PART.fullmatch(part):
            raise TierwiseError(
                f"{part[:80]!r} cannot be the name of a file", "use letters, digits, '_', '-' and '.'"
            )
    return directory.joinpath(*parts)


def resolved_path(path: Path) -> Path:
    """The absolute path without links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise TierwiseError(f"{str(path)[:200]!r} cannot be resolved", "name another path") from None


def checked_file_below(directory: Path, name: str) -> Path:
    """The path of a file that text in ``directory`` names, and that must lie in it; links are resolved."""
    try:
        path = (directory / name).resolve()
        path.exists()  # refuses a name that is too long
        inside = path.is_relative_to(directory.resolve())
    except (OSError, RuntimeError, ValueError):
        inside = False
    if not inside:
        raise TierwiseError(f"{name[:80]!r} does not lie in {directory}", "name a file in that folder")
    return path
