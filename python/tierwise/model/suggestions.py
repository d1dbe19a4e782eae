"""Names as people write them: several with commas, and what was meant by one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


def names_in(text: str) -> list[str]:
    """Names of a list with commas; none that is empty."""
    return [name for part in text.split(",") if (name := part.strip())]


def nearest(name: str, known: Iterable[str], count: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """Up to ``count`` known names that are like the unknown one, the likest first.

    ``cutoff`` is how much alike they must be, 1 for equal ones.
    """
    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The fix for an unknown name of a list too long to print; ``otherwise`` if none is like it."""
    near = nearest(name, known)
    return f"did you mean {near[0]}?" if near else otherwise


def one_of(name: str, known: Collection[str]) -> str:
    """The fix for an unknown name of a short list: the likest, if there is one, and all."""
    names = f"use one of {', '.join(known)}"
    return " ".join(filter(None, [did_you_mean(name, known, ""), names]))
