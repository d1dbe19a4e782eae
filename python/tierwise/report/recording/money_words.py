"""Money and time in words."""

from __future__ import annotations

from tierwise.model.units import SYMBOLS
from tierwise.report import numbers

_CENT = 0.01
_MONTHS_PER_YEAR = 12
LONG_MONTHS = 120


def money(amount: float, currency: str) -> str:
    """``12 $/month``, ``12 CHF/month``."""
    unit = f"\u00a0{SYMBOLS.get(currency, currency)}/month"
    if 0 < amount < _CENT:
        return f"less than {_CENT}{unit}"
    return f"{figure(amount)}{unit}"


def figure(amount: float) -> str:
    """An amount without its currency; whole from 10 on."""
    return numbers.significant(amount, 2) if 0 < abs(amount) < 10 else numbers.count(amount)


def cents(amount: float) -> str:
    """An amount of a bill, to the cent, so that parts and sum agree."""
    return f"{amount:,.2f}".replace(",", "\u202f").replace("-", "−")


def cost(amount: float, currency: str) -> str:
    """What something costs more, that it costs nothing, or what it saves."""
    if amount > 0:
        return f"for {money(amount, currency)}"
    return "at no further cost" if amount == 0 else f"and {money(-amount, currency)} less"


def months(value: float | None) -> str:
    """``18 months``, ``9 years``; a dash if unknown."""
    if value is None:
        return numbers.NONE
    if value >= LONG_MONTHS:
        return "over 10 years"
    if value >= 2 * _MONTHS_PER_YEAR:
        return f"{value / _MONTHS_PER_YEAR:.1f} years"
    return f"{value:.0f} months" if value >= 2 else f"{value * 30.4:.0f} days"
