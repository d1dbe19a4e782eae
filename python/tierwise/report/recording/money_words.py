"""Money and time in words, and bills of new devices: each part with its quantity and its price."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise import Option
from tierwise.advise.costs import DeviceBill, UsedPrice
from tierwise.device_models.prices import BillPart, MemoryPrice
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Block, Cell, Table, Text, Tone, figure, table

_CENT = 0.01
_MONTHS_PER_YEAR = 12
LONG_MONTHS = 120


def money(amount: float, currency: str) -> str:
    """``12 $/month``, ``12 CHF/month``."""
    unit = f"\u00a0{SYMBOLS.get(currency, currency)}/month"
    if 0 < amount < _CENT:
        return f"less than {_CENT}{unit}"
    return f"{amount_words(amount)}{unit}"


def amount_words(amount: float) -> str:
    """An amount without its currency: to the cent below 100, unless it is whole."""
    return numbers.amount(amount)


def cents(amount: float) -> str:
    """An amount of a bill, to the cent, so that parts and sum agree."""
    return numbers.cents(amount)


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


_UNITS = {"size": "GiB", "iops": "I/Os per second", "throughput": "MiB/s"}


def part_words(part: BillPart) -> str:
    """What is paid: ``100 GiB``, ``the device``, ``2 devices``, ``1.3 more when worn out``."""
    if part.what == "replacement":
        return f"{numbers.significant(part.quantity, 2)} more when worn out"
    if part.what == "purchase":
        return "the device" if part.quantity == 1 else f"{part.quantity:.0f} devices"
    return f"{_quantity(part.quantity)} {_UNITS[part.what]}"


def bill_table(title: str, option: Option, currency: str) -> Table:
    """Each part of a placement's price, the rent that ends, and the sum."""
    unit = f"{SYMBOLS.get(currency, currency)}/month"
    bills = table(["paid for"], [f"{unit}\nof one", unit], title, names=["new device"])
    for bill in option.bills:
        _add(bills, bill)
    if option.credit_per_month:
        bills.add("recorded", "rent that ends", "", figure(-option.credit_per_month, cents))
    bills.add("in all", "", "", figure(option.cost_per_month, cents), tone=Tone.QUIET)
    if abs(option.cost_at_predicted_rate_per_month - option.cost_per_month) >= 0.01:
        words = "if the load fills the predicted rate, which wears drives sooner"
        cell = figure(option.cost_at_predicted_rate_per_month, cents)
        bills.add("in all", words, "", cell, tone=Tone.QUIET)
    return bills


def _add(table: Table, bill: DeviceBill) -> None:
    if not bill.parts:
        table.add(bill.device, "owned", "", figure(0.0, cents))
    for part in bill.parts:
        table.add(bill.device, part_words(part), _each(part), figure(part.per_month, cents))


def _each(part: BillPart) -> Cell:
    shown = cents(part.price_each) if part.price_each >= 1 else f"{part.price_each:.5f}".rstrip("0")
    return Cell(shown, value=part.price_each)


def _quantity(value: float) -> str:
    return numbers.count(value) if abs(value - round(value)) < 1e-3 else numbers.significant(value)


def price_texts(prices: Sequence[UsedPrice]) -> list[Block]:
    """Where the prices come from, which of them are old, and which were not checked."""
    stale = stale_sentence(prices)
    sources = [price_text(price.device, price) for price in prices]
    return [*([Text(stale, Tone.WARNING)] if stale else []), *sources]


def price_text(name: str, price: UsedPrice | MemoryPrice) -> Text:
    """``Price of gp3 (2025, not checked): its source.``"""
    sentences = [*([price.date] if price.date else []), *([] if price.checked else ["not checked"])]
    dated = f" ({', '.join(sentences)})" if sentences else ""
    return Text(f"Price of {name}{dated}: {price.source}.", Tone.QUIET)


def stale_sentence(prices: Sequence[UsedPrice]) -> str:
    """The prices that may be older than a year, and those that were not checked; empty if none is."""
    stale = [f"{price.device} ({price.date})" for price in prices if price.stale]
    unchecked = [price.device for price in prices if not price.checked]
    sentences = [
        *([f"Prices that may be older than a year: {', '.join(stale)}."] if stale else []),
        *([f"Prices that nobody checked against their source: {', '.join(unchecked)}."] if unchecked else []),
    ]
    return " ".join([*sentences, "Give current ones with --prices."]) if sentences else ""
