"""Prices of devices, from a file or from the profile, and what a device costs a month in its parts."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from tierwise.device_models.profiles import DeviceProfile, full_profile_name, load_profile, profile_names
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, first_validation_problem, parse_as_model, parse_toml, read_text
from tierwise.model.units import GIB, money_sum
from tierwise.results.measurements import StrictModel

SHIPPED = DATA / "prices.toml"
_USD = "USD"
_GIB_PER_GB = 2**30 / 1e9
_MB_PER_MIB = 2**20 / 1e6
_FIX = "mend that field; see docs/how-to/advise.md"

Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False, strict=True)]
"""Of money, in the currency of the file, or a number of units; not negative."""
Gib = Annotated[float, Field(ge=0.001, le=1e9, allow_inf_nan=False, strict=True)]


def _iso_date(value: object) -> object:
    return value.isoformat() if type(value) is datetime.date else value


Date = Annotated[str, BeforeValidator(_iso_date), Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
"""A day, a month or a year: ``2026-03-14``, ``2026-03``, ``2026``."""


class DevicePrice(StrictModel):
    """The price of a device: bought as a whole, or rented by the month."""

    purchase: Amount | None = None
    """Of the whole device, once."""
    per_gib_month: Amount | None = None
    """Rent of a GiB for a month."""
    least_gib: Gib = 1.0
    """Size of the smallest volume."""
    step_gib: Gib = 1.0
    """Sizes are billed in whole steps."""
    most_gib: Gib | None = None
    """Size of the largest volume; that of the profile if not given."""
    per_iops_month: Amount = 0.0
    """Rent of one provisioned I/O per second beyond those included."""
    per_iops_month_above: list[tuple[Amount, Amount]] = []
    """Steps of that rent: a number of I/Os per second, ascending, and the rent of each one above it."""
    included_iops: Amount = 0.0
    """I/Os per second that the price of the size includes."""
    per_mib_per_s_month: Amount = 0.0
    """Rent of one provisioned MiB per second beyond those included."""
    included_mib_per_s: Amount = 0.0
    """MiB per second that the price of the size includes."""

    @property
    def rented(self) -> bool:
        """Whether it is paid by the month."""
        return self.per_gib_month is not None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.purchase is None) == (self.per_gib_month is None):
            raise ValueError("give one of purchase and per_gib_month")
        rent = self.model_fields_set - {"purchase", "source", "date", "checked"}
        if self.purchase is not None and rent:
            raise ValueError(f"{min(rent)} belongs to a rented device, and purchase to one that is bought")
        if self.most_gib is not None and self.most_gib < self.least_gib:
            raise ValueError("most_gib is below least_gib")
        if any(above[0] <= below[0] for below, above in pairwise(self.per_iops_month_above)):
            raise ValueError("per_iops_month_above is not ascending")
        return self


class ListedPrice(DevicePrice):
    """An entry of a file of prices."""

    source: str = Field(min_length=12)
    """Where the price comes from."""
    date: Date
    """Day, month or year of the price."""
    checked: bool = False
    """Whether somebody compared it with the source. In a user's file it is taken as compared if not given."""

    @model_validator(mode="after")
    def _date_has_come(self) -> Self:
        if _first_day(self.date) > datetime.date.today():
            raise ValueError(f"date {self.date} has not come")
        return self

    def is_stale(self, today: datetime.date) -> bool:
        """Whether it may be older than a year; a month or a year is counted from its first day."""
        return (today - _first_day(self.date)).days > 365


class MemoryPrice(StrictModel):
    """The price of memory, as the difference of two machines."""

    per_gib_month: Amount
    """Rent of a GiB for a month, or its purchase spread over its service."""
    source: str = Field(min_length=12)
    """Where the price comes from."""
    date: Date
    """Day, month or year of the price."""
    checked: bool = False
    """Whether somebody compared it with the source."""


class PriceFile(StrictModel):
    """The fields of a file of prices, such as ``data/prices.toml``."""

    currency: str = Field(pattern=r"^[A-Z]{3}$")
    """Of every price in the file, a code of ISO 4217 such as ``EUR``."""
    devices: dict[str, ListedPrice] = {}
    """Name of a profile, or its short name, -> its price."""
    memory: MemoryPrice | None = None
    """Of memory."""


@dataclass(frozen=True)
class PriceList:
    """Prices in one currency.

    Attributes:
        currency: a code of ISO 4217.
        own: entries of the user's file.
        shipped: entries that ship; none if they are in another currency.
        file: the user's file, if there is one.
        memory: price of memory; ``None`` if it is not known in this currency.
    """

    currency: str
    own: Mapping[str, ListedPrice] = field(default_factory=dict)
    shipped: Mapping[str, ListedPrice] = field(default_factory=dict)
    file: Path | None = None
    memory: MemoryPrice | None = None

    @classmethod
    def read(cls, file: Path | None = None) -> PriceList:
        """The prices that ship, replaced by those of a file, entry by entry."""
        shipped = _shipped()
        if file is None:
            return cls(shipped.currency, {}, shipped.devices, memory=shipped.memory)
        own = _read(file)
        known = profile_names()
        entries = {_full_name(name, known): _of_user(price) for name, price in own.devices.items()}
        if len(entries) < len(own.devices):
            raise TierwiseError(f"{file}: devices: two names of one device", "give each device one entry")
        same = own.currency == shipped.currency
        memory = own.memory or (shipped.memory if same else None)
        return cls(own.currency, entries, shipped.devices if same else {}, file, memory)

    def of(self, profile: DeviceProfile) -> DevicePrice | None:
        """The price of a device; ``None`` if none is known, as for an array of priced members.

        An entry of the user's file comes first, then ``[price]`` of the profile, then an entry that ships. A
        profile that is like another, or has the name of one that ships, has the other's price if it has none,
        but for a purchase price of another capacity.

        Raises:
            TierwiseError: a profile with ``[price]``, in US dollars, beside prices in another currency.
        """
        known = [profile, *profile.likes]
        for giving in known:
            if giving.name in self.own:
                return _inherited(self.own[giving.name], giving, profile)
        if "price" in profile.fields:
            if self.currency != _USD:
                raise TierwiseError(
                    f"{profile.file}: [price] is in {_USD}, the other prices are in {self.currency}",
                    f"add [devices.{profile.name}] to {self.file}",
                )
            giving = next(base for base in known if "price" in parse_toml(base.text, str(base.file)))
            return _inherited(_own_price(profile), giving, profile)
        listed = next((base.name for base in known if base.name in self.shipped), None)
        return _inherited(self.shipped[listed], _shipped_profile(listed), profile) if listed else None


def _inherited(price: DevicePrice, giving: DeviceProfile, profile: DeviceProfile) -> DevicePrice | None:
    """The price, unless it is the purchase of a device of another capacity."""
    return price if price.rented or giving.capacity_bytes == profile.capacity_bytes else None


@cache
def _shipped_profile(name: str) -> DeviceProfile:
    """The device that a shipped price is of; a file of the user's may have its name."""
    return load_profile(name)


@cache
def _shipped() -> PriceFile:
    return _read(SHIPPED)


def _read(file: Path) -> PriceFile:
    raw = parse_toml(read_text(file, "give a readable TOML file"), str(file))
    try:
        return PriceFile.model_validate(raw)
    except ValidationError as error:
        problem, fix = first_validation_problem(error, PriceFile), _FIX
        if re.match(r"devices\.\S+\.currency:", problem):
            fix = "give one currency, at the top of the file, and keep another currency in another file"
        raise TierwiseError(f"{file}: {problem}", fix) from None


def _of_user(price: ListedPrice) -> ListedPrice:
    return price if "checked" in price.model_fields_set else price.model_copy(update={"checked": True})


def _first_day(date: str) -> datetime.date:
    """The day, or the first one of a month or a year.

    Raises:
        ValueError: no such day.
    """
    parts = [int(part) for part in re.split("-", date)]
    return datetime.date(*[*parts, 1, 1][:3])


def _full_name(name: str, known: list[str]) -> str:
    """The profile that a short name stands for; any other name is that of a profile of the user."""
    try:
        return full_profile_name(name, known)
    except TierwiseError:
        return name


def _own_price(profile: DeviceProfile) -> DevicePrice:
    """``[price]`` of a profile, in US dollars for 10^9 and 10^6 bytes, as it is billed."""
    given: dict[str, Any] = profile.fields["price"]
    rent = sorted(given.keys() - {"usd"})
    if "usd" in given and rent:
        raise TierwiseError(
            f"{profile.file}: price.usd is of a device that is bought, price.{rent[0]} of one that is rented",
            "give one of the two",
        )
    changed = {"purchase": given.get("usd")}
    per_gb_month: float | None = given.get("usd_per_gb_month")
    if per_gb_month is not None:
        changed = {
            "per_gib_month": per_gb_month * _GIB_PER_GB,
            "per_iops_month": given.get("usd_per_iops_month", 0.0),
            "per_iops_month_above": given.get("usd_per_iops_month_above", []),
            "included_iops": given.get("included_iops", 0.0),
            "per_mib_per_s_month": given.get("usd_per_mb_per_s_month", 0.0) * _MB_PER_MIB,
            "included_mib_per_s": given.get("included_mb_per_s", 0.0) / _MB_PER_MIB,
        }
    known = {name: value for name, value in changed.items() if value is not None}
    return parse_as_model(DevicePrice, known, f"{profile.file}: [price]", _FIX)


YEARS = 5.0
"""Service life of a purchased device: the usual term of its guarantee."""
_MIB_PER_MB = 1e6 / 2**20
_ROUNDING = 1e-10
"""Of sums in GiB: a tenth of a byte."""


class BillPart(StrictModel):
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


def cost_per_month(
    profile: DeviceProfile, prices: PriceList, size_bytes: float, years: float = YEARS
) -> float | None:
    """Price of a month in the currency of the prices: the sum of :func:`bill_parts`."""
    parts = bill_parts(profile, prices, size_bytes, years)
    return None if parts is None else money_sum(part.per_month for part in parts)


def bill_parts(
    profile: DeviceProfile, prices: PriceList, size_bytes: float, years: float = YEARS
) -> list[BillPart] | None:
    """The parts of a month's price in the currency of the prices; ``None`` without a price.

    An array without a price of its own costs what its members cost, each with its share of the size, so that
    both sides of a mirror are paid.

    Args:
        profile: of the device, with the I/Os and the throughput that it provisions.
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


def billed_gib(price: DevicePrice, profile: DeviceProfile, size_bytes: float) -> float:
    """Size that a volume is billed for: needed, allowed and large enough for its speed, in steps."""
    needed = max(size_bytes / GIB, price.least_gib, gib_for_speed(profile))
    return math.ceil(needed / price.step_gib - _ROUNDING) * price.step_gib


def largest_gib(prices: PriceList, profile: DeviceProfile) -> float:
    """Size of the largest volume, in whole steps: 0 if none so small has the speed of the profile.

    An array without a price of its own has the largest members.
    """
    price = prices.of(profile)
    if price is None and profile.member is not None:
        members = profile.capacity_bytes / profile.member.capacity_bytes
        return largest_gib(prices, profile.member) * members
    if price is None or price.most_gib is None:
        return profile.capacity_bytes / GIB
    largest = math.floor(price.most_gib / price.step_gib + _ROUNDING) * price.step_gib
    return largest if billed_gib(price, profile, 0) <= largest else 0.0


def gib_for_speed(profile: DeviceProfile) -> float:
    """Smallest size with the limits that the profile has: of size itself, or of what it provisions."""
    limits = [*profile.fields.get("limits", {}).values(), *profile.fields.get("credits", {}).values()]
    each = [_gib_for(limit, profile) for limit in limits if isinstance(limit, dict) and limit.get("per_gib")]
    return max(each, default=0.0)


def _gib_for(limit: Mapping[str, float], profile: DeviceProfile) -> float:
    base, per_gib = limit.get("base", 0.0), limit["per_gib"]
    provisioned = limit.get("provisioned")
    if provisioned is None:
        return min(profile.capacity_bytes / GIB, (limit.get("most", math.inf) - base) / per_gib)
    return (provisioned - base) / per_gib if provisioned > limit.get("least", 0.0) else 0.0


def _rent(price: DevicePrice, profile: DeviceProfile, size_bytes: float) -> Iterator[BillPart]:
    limits: Mapping[str, Mapping[str, float]] = profile.fields.get("limits", {})
    yield bill_part("size", billed_gib(price, profile, size_bytes), price.per_gib_month or 0.0)
    yield from _iops_rent(price, limits.get("iops", {}).get("provisioned", 0.0))
    mib_per_s = limits.get("mb_per_s", {}).get("provisioned", 0.0) * _MIB_PER_MB
    beyond = max(mib_per_s - price.included_mib_per_s, 0.0)
    if beyond and price.per_mib_per_s_month:
        yield bill_part("throughput", beyond, price.per_mib_per_s_month)


def _iops_rent(price: DevicePrice, iops: float) -> Iterator[BillPart]:
    """Each step replaces the rent before it for the I/Os above the step."""
    each, counted = price.per_iops_month, min(price.included_iops, iops)
    for above, next_each in [*price.per_iops_month_above, (math.inf, 0.0)]:
        end = min(max(above, counted), max(iops, counted))
        if end > counted and each:
            yield bill_part("iops", end - counted, each)
        counted, each = end, next_each
