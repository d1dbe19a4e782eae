"""What a device costs a month: a volume as its provider bills it, a purchase spread over years of service."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tierwise.device_models.prices import Price, Prices
from tierwise.device_models.profiles import Profile

YEARS = 5.0
"""Service life of a purchased device: the usual term of its guarantee."""
_GIB = 1 << 30
_MIB_PER_MB = 1e6 / 2**20
_ROUNDING = 1e-9


def cost_per_month(profile: Profile, prices: Prices, size_bytes: float, years: float = YEARS) -> float | None:
    """Price of a month in the currency of the prices; ``None`` without a price.

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
        return price.purchase / (12 * years)
    if price is not None:
        return _rent(price, profile, size_bytes)
    if profile.member is None:
        return None
    each_bytes = size_bytes * profile.member.capacity_bytes / profile.capacity_bytes
    each = cost_per_month(profile.member, prices, each_bytes, years)
    return None if each is None else each * int(profile.fields["members"])


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


def _rent(price: Price, profile: Profile, size_bytes: float) -> float:
    limits: Mapping[str, Mapping[str, float]] = profile.fields.get("limits", {})
    iops: float = limits.get("iops", {}).get("provisioned", 0.0)
    mib_per_s = limits.get("mb_per_s", {}).get("provisioned", 0.0) * _MIB_PER_MB
    throughput: float = max(mib_per_s - price.included_mib_per_s, 0.0) * price.per_mib_per_s_month
    size = billed_gib(price, profile, size_bytes) * (price.per_gib_month or 0.0)
    return size + _iops_rent(price, iops) + throughput


def _iops_rent(price: Price, iops: float) -> float:
    """Each step replaces the rent before it for the I/Os above the step."""
    rent, each = 0.0, price.per_iops_month
    counted = min(price.included_iops, iops)
    for above, next_each in price.per_iops_month_above:
        end = min(max(above, counted), max(iops, counted))
        rent += (end - counted) * each
        counted, each = end, next_each
    return rent + (iops - counted) * each
