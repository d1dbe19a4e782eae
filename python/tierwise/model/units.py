"""Sizes, durations and money as people write them, and sizes as the kernel counts them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from tierwise.model.errors import TierwiseError

MIB = 1 << 20
GIB = 1 << 30
GB = 1e9
MOST_BYTES = 1 << 60
"""No machine and no device has more."""
SECTOR_BYTES = 512
"""Unit of the kernel's sector counts, independent of the device's own sector size."""

_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_PATTERN = re.compile(r"0*(\d{1,19})(?:(\.\d{1,9})?\s*([KMGT])|\s*)(?:i?B)?", re.IGNORECASE)
"""Not more digits than 64 bits have: Python refuses thousands of them, and a float holds 308."""
_SECONDS = {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s|min|h|)")


def parse_size_bytes(text: str, what: str, least_bytes: int = 1) -> int:
    """Bytes in a size such as ``4G``, ``1.5G``, ``512M`` or ``8192``; K, M, G and T are powers of 1024.

    One smaller than ``least_bytes`` most likely lacks its unit, and is refused.
    """
    match = _PATTERN.fullmatch(text.strip())
    factor = _FACTORS[match[3].upper()] if match and match[3] else 1
    size_bytes = int(match[1]) * factor + round(float(match[2] or 0) * factor) if match else 0
    if not match or size_bytes == 0:
        raise TierwiseError(f"{what}: {text!r} is not a size above 0", "write for example 4G or 512M")
    if size_bytes > MOST_BYTES:
        raise TierwiseError(
            f"{what}: {text.strip()} is more than {MOST_BYTES >> 40:,}T", "write for example 4G or 512M"
        )
    if size_bytes < least_bytes:
        raise TierwiseError(
            f"{what}: {text.strip()} is {size_bytes:,} byte{'' if size_bytes == 1 else 's'}",
            f"write the unit, for example {match[1]}G",
        )
    return size_bytes


def parse_duration_s(text: str, what: str) -> float:
    """Seconds in a duration such as ``30s``, ``10min``, ``1.5h`` or ``500us``; seconds without a unit."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise TierwiseError(f"{what}: {text!r} is not a duration above 0", "write for example 30s or 10min")
    return seconds


_LEAST_SHOWN = 0.001


def significant_text(value: float, figures: int = 3) -> str:
    """``value`` to some significant figures, without an exponent, with thin spaces between thousands.

    A value nearer to 0 than 0.001 is shown as such.
    """
    if value == 0:
        return "0"
    if abs(value) < _LEAST_SHOWN:
        return f"<{_LEAST_SHOWN}" if value > 0 else f">−{_LEAST_SHOWN}"
    decimals = figures - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    return f"{rounded:,.{max(decimals, 0)}f}".replace(",", "\u202f").replace("-", "−")


SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£"}
"""Code of a currency -> its sign; other currencies are shown by their code."""
_MONEY_DIGITS = 9
"""Decimals of a sum of money: of cents and of thousandths, no sum differs from what it is by less."""


def money_sum(amounts: Iterable[float]) -> float:
    """The sum of amounts of money without its rounding: 0.1 and 0.2 are 0.3, which a budget of 0.3 pays."""
    return round(math.fsum(amounts), _MONEY_DIGITS)


_AMOUNT = re.compile(r"([$€£]|[A-Z]{3})?\s*(\d+(?:\.\d+)?)\s*([$€£]|[A-Z]{3})?\s*(?:/(?:month|mo|m))?")


def parse_monthly_amount(text: str, what: str, currency: str) -> float:
    """The amount in ``50/month``, ``$50`` or ``50 EUR/month``."""
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
