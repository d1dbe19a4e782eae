"""Formats numbers for people: three significant figures, a suitable unit, a dash for unknown values."""

from __future__ import annotations

import math
from collections.abc import Callable

from tierwise.model.statistics import BoundKind, Interval
from tierwise.model.units import SYMBOLS
from tierwise.model.units import significant_text as significant_text  # noqa: PLC0414  (exported)

NONE = "–"
_EN_DASH = "–"


def paper_figure_text(value: float) -> str:
    """A figure with the digits that a paper printed."""
    return f"{value:,.12g}".replace(",", "\u202f")


def ratio_text(value: float) -> str:
    """A ratio: two decimals below 2, otherwise one, none from 100 on."""
    if value < 0.1:
        return significant_text(value, 2)
    return f"{value:.2f}" if value < 1.95 else f"{value:.1f}" if value < 99.5 else significant_text(value)


def seconds_text(value_s: float | None) -> str:
    """A duration in a suitable unit."""
    if value_s is None:
        return NONE
    return f"{significant_text(value_s)} s" if value_s >= 1 or value_s == 0 else latency_text(value_s * 1e6)


def latency_text(value_us: float | None) -> str:
    """A latency in µs, ms or s."""
    if value_us is None:
        return NONE
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value_us) >= size:
            return f"{significant_text(value_us / size)} {unit}"
    return f"{significant_text(value_us)} µs"


def size_text(value_bytes: float | None) -> str:
    """Bytes in powers of 1024."""
    if value_bytes is None:
        return NONE
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value_bytes >= 1024**power:
            return f"{significant_text(value_bytes / 1024**power)} {unit}"
    return f"{value_bytes:.0f} B"


def count_text(value: float | None) -> str:
    """A whole count, with thin spaces between thousands."""
    return NONE if value is None else f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")


def counted_noun(number: float, noun: str, plural: str = "") -> str:
    """``1 placement``, ``2 placements``; ``plural`` where it is not the noun with an s."""
    return f"{count_text(number)} {noun if number == 1 else plural or f'{noun}s'}"


def grouped_digits(value: float, decimals: int = 0) -> str:
    """A number with commas between groups of thousands."""
    return f"{value:,.{decimals}f}"


def cents_text(value: float) -> str:
    """An amount of money to the cent."""
    return f"{value:,.2f}".replace(",", "\u202f").replace("-", "−")


def amount_text(value: float) -> str:
    """An amount of money: to the cent below 100, unless it is whole."""
    return cents_text(value) if abs(value) < 100 and round(value, 2) % 1 else count_text(value)


def least_budget_text(cost: float, decimals: int = 2) -> float:
    """The least amount with so many decimals that pays for a cost."""
    return math.ceil(round(cost * 10.0**decimals, 6)) / 10.0**decimals


def currency_symbol(currency: str) -> str:
    """``$`` for ``USD``; a currency without a sign by its code."""
    return SYMBOLS.get(currency, currency)


def per_month_unit(currency: str) -> str:
    """``$/month``, the unit of costs."""
    return f"{currency_symbol(currency)}/month"


def usd_text(value: float) -> str:
    """A price in dollars."""
    return f"{amount_text(value)}\u00a0$"


def percent_text(share: float | None) -> str:
    """A share of 1 as a percentage: whole from 10 % on, one decimal below."""
    if share is None:
        return NONE
    value = 100 * share
    shown = f"{value:.0f}" if abs(value) >= 9.95 or value == 0 else f"{value:.1f}"
    return f"{shown}\u00a0%".replace("-", "−")


def signed_percent_text(difference: float) -> str:
    """``+3.1 %`` or ``−12 %``."""
    return f"{'−' if round(difference, 3) < 0 else '+'}{percent_text(abs(difference))}"


def range_text(low: str, high: str) -> str:
    """A range; a unit common to both ends is written once."""
    low_number, _, low_unit = low.rpartition(" ")
    _, _, high_unit = high.rpartition(" ")
    return (
        f"{low_number}{_EN_DASH}{high}" if low_number and low_unit == high_unit else f"{low}{_EN_DASH}{high}"
    )


def with_bound_sign(interval: Interval, text: str) -> str:
    """``text`` of an estimate, after ≥ or ≤ if the estimate is only a lower or upper bound."""
    return with_sign_of_bound(interval.bound, text)


def with_sign_of_bound(bound: BoundKind, text: str) -> str:
    """``text`` after the sign of its bound."""
    return {BoundKind.AT_LEAST: "≥\u00a0", BoundKind.AT_MOST: "≤\u00a0"}.get(bound, "") + text


def formatter_of(kind: str) -> Callable[[float | None], str]:
    """Formatter for values of a kind of measure."""
    return _BY_KIND[kind]


def seconds_span(interval: Interval) -> str:
    """The interval of a duration, or nothing when there is none."""
    return _span(interval, seconds_text)


def ratio_span(interval: Interval) -> str:
    """The interval of a ratio, or nothing when there is none."""
    return _span(interval, ratio_text)


def interval_text(ratio: Interval) -> str:
    """The interval of a ratio with its level, for sentences."""
    return f"95\u00a0% interval {ratio_span(ratio)}"


def percent_span(interval: Interval) -> str:
    """The interval of a share, or nothing when there is none."""
    unit = "\u00a0%"
    ends = _span(interval, lambda share: percent_text(share).removesuffix(unit))
    return ends + unit if ends else ""


def _span(interval: Interval, text: Callable[[float], str]) -> str:
    if interval.low is None or interval.high is None or interval.bound is not BoundKind.EXACT:
        return ""
    return range_text(text(interval.low), text(interval.high))


def _plain(value: float | None) -> str:
    return NONE if value is None else significant_text(value)


_BY_KIND: dict[str, Callable[[float | None], str]] = {
    "seconds": seconds_text,
    "bytes": size_text,
    "count": count_text,
    "share": percent_text,
    "rate": _plain,
    "score": _plain,
}
