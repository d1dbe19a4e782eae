"""Bills of new devices: each part with its quantity and its price."""

from __future__ import annotations

from tierwise.advise import Option
from tierwise.advise.costs import DeviceBill
from tierwise.device_models.prices import BillPart
from tierwise.model.units import SYMBOLS
from tierwise.report import numbers
from tierwise.report.document import Cell, Table, Tone, figure, table
from tierwise.report.recording.money_words import cents

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
    found = table(["paid for"], [f"{unit}\nof one", unit], title, names=["new device"])
    for bill in option.bills:
        _add(found, bill)
    if option.credit_per_month:
        found.add("recorded", "rent that ends", "", figure(-option.credit_per_month, cents))
    found.add("in all", "", "", figure(option.cost_per_month, cents), tone=Tone.QUIET)
    if abs(option.cost_at_predicted_rate_per_month - option.cost_per_month) >= 0.01:
        words = "if the load fills the predicted rate, which wears drives sooner"
        cell = figure(option.cost_at_predicted_rate_per_month, cents)
        found.add("in all", words, "", cell, tone=Tone.QUIET)
    return found


def _add(found: Table, bill: DeviceBill) -> None:
    if not bill.parts:
        found.add(bill.device, "owned", "", figure(0.0, cents))
    for part in bill.parts:
        found.add(bill.device, part_words(part), _each(part), figure(part.per_month, cents))


def _each(part: BillPart) -> Cell:
    shown = cents(part.price_each) if part.price_each >= 1 else f"{part.price_each:.5f}".rstrip("0")
    return Cell(shown, value=part.price_each)


def _quantity(value: float) -> str:
    return numbers.count(value) if abs(value - round(value)) < 1e-3 else numbers.significant(value)
