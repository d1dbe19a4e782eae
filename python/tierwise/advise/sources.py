"""Where the prices of an answer come from, and how its volumes are billed."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tierwise.advise.recorded_volumes import RecordedVolume
from tierwise.advise.terms import Terms
from tierwise.device_models.prices import ListedPrice, gib_for_speed
from tierwise.predict import resolve
from tierwise.results.measurements import Record


class UsedPrice(Record):
    """The price of one device, and how old it is."""

    device: str
    source: str
    date: str | None
    """A day, a month or a year; ``None`` for a price in a device's profile."""
    stale: bool
    """Whether it may be older than a year."""
    checked: bool
    """Whether somebody compared it with the source."""


def used_prices(devices: Sequence[str], terms: Terms, today: datetime.date) -> list[UsedPrice]:
    """Source and date of the price of each device that is not owned; of an array, those of its members."""
    prices: dict[str, UsedPrice] = {}
    for name in devices:
        profile = resolve(name).profile
        while (price := terms.prices.of(profile)) is None and profile.member:
            profile = profile.member
        if price is None or name in terms.have or profile.name in prices:
            continue
        if isinstance(price, ListedPrice):
            used = UsedPrice(
                device=profile.name,
                source=price.source,
                date=price.date,
                stale=price.is_stale(today),
                checked=price.checked,
            )
        else:
            source = profile.sources.get("price", f"[price] of {profile.file}")
            used = UsedPrice(device=profile.name, source=source, date=None, stale=False, checked=True)
        prices[profile.name] = used
    return list(prices.values())


def billing_notes(devices: Sequence[str], terms: Terms, volumes: Sequence[RecordedVolume]) -> list[str]:
    """What the reader of the costs has to know, as sentences without a full stop."""
    notes = []
    for name in devices:
        profile = resolve(name).profile
        price = terms.prices.of(profile)
        least = gib_for_speed(profile)
        if price and price.rented and name not in terms.have and least > price.least_gib:
            notes.append(
                f"{name}: billed for {least:,.0f} GiB or more, as a smaller one does not have its speed"
            )
    if terms.recorded_on and not volumes:
        notes.append("no recorded volume is credited: none is rented, or the operating system is on it")
    return notes
