"""What a device costs a month, in its parts: a volume as its provider bills it, a purchase over its years."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from tierwise.device_models.prices import Price, Prices
from tierwise.device_models.profiles import Profile
from tierwise.results.measurements import Record

YEARS = 5.0
"""Service life of a purchased device: the usual term of its guarantee."""
_GIB = 1 << 30
_MIB_PER_MB = 1e6 / 2**20
_ROUNDING = 1e-10
"""Of sums in GiB: a tenth of a byte."""


class BillPart(Record):
    """One part of what a device costs a month: a quantity times its price."""

    what: Literal["size", "iops", "throughput", "purchase", "replacement"]
    """Rented GiB, provisioned I/Os or MiB per second beyond those included; devices that are bought, or that
    are bought again when they are worn out."""
    quantity: float
    """How many of them are paid for."""
    price_each: float
    """Of one of them a month."""
    per_month: float
    """The product."""


def bill_part(
    what: Literal["size", "iops", "throughput", "purchase", "replacement"], quantity: float, price_each: float
) -> BillPart:
    """A part with its product."""
    return BillPart(what=what, quantity=quantity, price_each=price_each, per_month=quantity * price_each)


def cost_per_month(profile: Profile, prices: Prices, size_bytes: float, years: float = YEARS) -> float | None:
    """Price of a month in the currency of the prices: the sum of :func:`bill_parts`."""
    parts = bill_parts(profile, prices, size_bytes, years)
    return None if parts is None else sum(part.per_month for part in parts)


def bill_parts(
    profile: Profile, prices: Prices, size_bytes: float, years: float = YEARS
) -> list[BillPart] | None:
    """The parts of a month's price in the currency of the prices; ``None`` without a price.

    An array without a price of its own costs what its members cost, each with its share of the size, so that
    both sides of a mirror are paid.

    Args:
        profile: of the device, with the I/Os and the throughput that it provisions.
        prices: of all devices.
        size_bytes: needed; what is bought is paid in full.
        years: over which a purchase is spread.
    """
    price = prices.of(profile)
    if price is not None and price.purchase is not None:
        return [bill_part("purchase", 1, price.purchase / (12 * years))]
    if price is not None:
        return list(_rent(price, profile, size_bytes))
    if profile.member is None:
        return None
    each_bytes = size_bytes * profile.member.capacity_bytes / profile.capacity_bytes
    each = bill_parts(profile.member, prices, each_bytes, years)
    members = int(profile.fields["members"])
    return None if each is None else [bill_part(p.what, p.quantity * members, p.price_each) for p in each]


def billed_gib(price: Price, profile: Profile, size_bytes: float) -> float:
    """Size that a volume is billed for: needed, allowed and large enough for its speed, in steps."""
    needed = max(size_bytes / _GIB, price.least_gib, gib_for_speed(profile))
    return math.ceil(needed / price.step_gib - _ROUNDING) * price.step_gib


def gib_for_speed(profile: Profile) -> float:
    """Smallest size with the limits that the profile has: of size itself, or of what it provisions."""
    limits = [*profile.fields.get("limits", {}).values(), *profile.fields.get("credits", {}).values()]
    each = [_gib_for(limit, profile) for limit in limits if isinstance(limit, dict) and limit.get("per_gib")]
    return max(each, default=0.0)


def _gib_for(limit: Mapping[str, float], profile: Profile) -> float:
    base, per_gib = limit.get("base", 0.0), limit["per_gib"]
    provisioned = limit.get("provisioned")
    if provisioned is None:
        return min(profile.capacity_bytes / _GIB, (limit.get("most", math.inf) - base) / per_gib)
    return (provisioned - base) / per_gib if provisioned > limit.get("least", 0.0) else 0.0


def _rent(price: Price, profile: Profile, size_bytes: float) -> Iterator[BillPart]:
    limits: Mapping[str, Mapping[str, float]] = profile.fields.get("limits", {})
    yield bill_part("size", billed_gib(price, profile, size_bytes), price.per_gib_month or 0.0)
    yield from _iops_rent(price, limits.get("iops", {}).get("provisioned", 0.0))
    mib_per_s = limits.get("mb_per_s", {}).get("provisioned", 0.0) * _MIB_PER_MB
    beyond = max(mib_per_s - price.included_mib_per_s, 0.0)
    if beyond and price.per_mib_per_s_month:
        yield bill_part("throughput", beyond, price.per_mib_per_s_month)


def _iops_rent(price: Price, iops: float) -> Iterator[BillPart]:
    """Each step replaces the rent before it for the I/Os above the step."""
    each, counted = price.per_iops_month, min(price.included_iops, iops)
    for above, next_each in [*price.per_iops_month_above, (math.inf, 0.0)]:
        end = min(max(above, counted), max(iops, counted))
        if end > counted and each:
            yield bill_part("iops", end - counted, each)
        counted, each = end, next_each
