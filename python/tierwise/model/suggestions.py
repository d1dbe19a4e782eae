"""Names that users type: comma-separated lists, and suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping


def names_in(text: str) -> list[str]:
    """The non-empty names of a comma-separated list."""
    return [name for part in text.split(",") if (name := part.strip())]


def nearest(name: str, known: Iterable[str], count: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """Up to ``count`` known names that resemble the unknown one, most similar first.

    ``cutoff`` is the least similarity, 1 for equal names.
    """
    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str, synonyms: Mapping[str, str] | None = None
) -> str:
    """The fix for an unknown name of a list too long to print; ``otherwise`` if none is similar.

    ``synonyms`` maps other words for a known name to it; they come before names that are merely similar.
    """
    meant = (synonyms or {}).get(name.lower())
    near = [meant] if meant else nearest(name, known)
    return f"did you mean {near[0]}?" if near else otherwise


def one_of(name: str, known: Collection[str], synonyms: Mapping[str, str] | None = None) -> str:
    """The fix for an unknown name of a short list: the most similar one, if any, and all."""
    names = f"use one of {', '.join(known)}"
    return " ".join(filter(None, [did_you_mean(name, known, "", synonyms), names]))
