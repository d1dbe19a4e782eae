"""Amounts of money as people write them."""

from __future__ import annotations

import re

from tierwise.model.errors import TierwiseError

SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£"}
"""Code of a currency -> its sign; other currencies are shown by their code."""
_AMOUNT = re.compile(r"([$€£]|[A-Z]{3})?\s*(\d+(?:\.\d+)?)\s*([$€£]|[A-Z]{3})?\s*(?:/(?:month|mo|m))?")


def parse_monthly(text: str, what: str, currency: str) -> float:
    """The amount in ``50/month``, ``$50`` or ``50 EUR/month``.

    Args:
        text: the amount, with or without its currency.
        what: the option, for errors.
        currency: the one that it has to be in, a code such as ``EUR``.

    Raises:
        TierwiseError: no amount, or one in another currency.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        raise TierwiseError(f"{what}: {text!r} is no amount of money", "write for example 50/month")
    before, amount, after = match.groups()
    for given in (before, after):
        if given not in (None, currency, SYMBOLS.get(currency)):
            raise TierwiseError(
                f"{what}: {text!r} is in {given}, the prices are in {currency}", f"give it in {currency}"
            )
    return float(amount)
