"""Terms of payment, and the monthly cost of a placement: new devices, less the rent of emptied volumes.

A drive that its writes wear out within its service life is bought again. The writes are those of the recorded
load, at the recorded rate, unless others are given.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Self

from tierwise.advise.wear import device_lifetime_months, write_rates_by_device
from tierwise.device_models.prices import (
    YEARS,
    BillPart,
    ListedPrice,
    PriceList,
    bill_part,
    bill_parts,
    cost_per_month,
    gib_for_speed,
    largest_gib,
)
from tierwise.device_models.profiles import profile_names as shipped_names
from tierwise.device_models.profiles import shipped_profile_texts
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key, split_names
from tierwise.model.numbers import percent_text
from tierwise.model.placement import EVERYTHING, Role, parse_placement
from tierwise.model.units import SECTOR_BYTES, money_sum
from tierwise.predict import RECORDED, Predictor, RecordedRun, resolve_device
from tierwise.predict.named_devices import roles_lost_at_stop
from tierwise.predict.ranking import roles_by_load
from tierwise.predict.role_space import RoleSpace
from tierwise.recording import RecordingMetadata
from tierwise.results.measurements import StrictModel

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FACTOR = re.compile(r"\d+(?:\.\d+)?")
_MOST_PERCENT = 10_000
HEADROOM = "20%"
"""Where a user gives none: ext4 has 7 to 10 % for itself and root, and ``max_wal_size`` is no hard limit."""
_MOST_YEARS = 50


@dataclass(frozen=True)
class PaymentTerms:
    """The conditions of payment.

    Attributes:
        prices: of all devices.
        have: full names of the devices that are owned already, which cost nothing.
        headroom: free space on each new device, as a share of its files.
        growth: of the files until the end of the period, as a share; a device has to hold them then.
        years: of service of a purchased device.
        recorded_on: role, or ``all``, -> full name of the device that the recorded one is.
        rebuildable: whether the database can be rebuilt, as a replica can: its files may be lost with a stop
            of the machine.
    """

    prices: PriceList = field(default_factory=PriceList.read)
    have: tuple[str, ...] = ()
    headroom: float = 0.0
    growth: float = 0.0
    years: float = YEARS
    recorded_on: Mapping[str, str] = field(default_factory=dict)
    rebuildable: bool = False

    def __post_init__(self) -> None:
        """Refuse what no command gives."""
        if not 0 < self.years <= _MOST_YEARS:
            raise TierwiseError(
                f"--years: {self.years:g} is not above 0 and at most {_MOST_YEARS}", "give 3 or 5"
            )
        for name, share in (("headroom", self.headroom), ("growth", self.growth)):
            if not 0 <= share <= _MOST_PERCENT / 100:
                raise TierwiseError(f"--{name}: {share:g} is no share of the files", "give 0.3 for 30%")
        if isinstance(self.have, str):
            raise TierwiseError(f"--have: {self.have!r} is no tuple of names", f"give ({self.have!r},)")

    @classmethod
    def parse(
        cls,
        *,
        have: str = "",
        headroom: str = "",
        growth: str = "",
        years: float = YEARS,
        prices: Path | None = None,
        recorded_on: str = "",
        rebuildable: bool = False,
    ) -> Self:
        """Read the terms as a user writes them, ``30%`` or ``log=io2,all=gp3``; an empty text is none of it.

        Raises:
            TierwiseError: naming the option, or the file of prices and its field.
        """
        return cls(
            prices=PriceList.read(prices),
            have=tuple(dict.fromkeys(resolve_device(name).name for name in split_names(have))),
            headroom=parse_percentage(headroom, "--headroom"),
            growth=_parse_growth(growth),
            years=years,
            recorded_on=parse_recorded_on(recorded_on),
            rebuildable=rebuildable,
        )

    @property
    def room(self) -> float:
        """Size that a new device needs, as a multiple of the recorded files."""
        return (1 + self.headroom) * (1 + self.growth)


def parse_percentage(text: str, option: str) -> float:
    """Read ``30%`` as 0.3; an empty text is 0.

    Raises:
        TierwiseError: anything else, naming the option.
    """
    if not text:
        return 0.0
    match = _PERCENT.fullmatch(text.strip())
    if not match or float(match[1]) > _MOST_PERCENT:
        raise TierwiseError(f"{option}: {text!r} is no percentage", "write for example 30%")
    return float(match[1]) / 100


def _parse_growth(text: str) -> float:
    """``50%``, or ``1.5`` as in ``tierwise predict``: a multiple of the recorded files."""
    if not _FACTOR.fullmatch(text.strip()):
        return parse_percentage(text, "--growth")
    if not 1 <= (factor := float(text)) <= _MOST_PERCENT / 100:
        raise TierwiseError(f"--growth: {text} is not from 1 to {_MOST_PERCENT // 100}", "write 1.5 or 50%")
    return factor - 1


def parse_recorded_on(text: str) -> dict[str, str]:
    """Role, or ``all``, to the full name of its device, in ``gp3`` or ``log=io2,all=gp3``."""
    if not text:
        return {}
    places = parse_placement(text, "--recorded-on") if "=" in text else {EVERYTHING: text.strip()}
    return {role: resolve_device(device).name for role, device in places.items()}


_KEPT = {"/", "/boot", "/boot/efi", "/usr", "/var"}
"""Mount points of the operating system: a volume with one of them is not given up."""


@dataclass(frozen=True)
class RecordedVolume:
    """A rented volume that holds nothing but files of the database.

    Attributes:
        device: full name of its profile.
        roles: of the files on it.
        rent_per_month: what it costs now.
    """

    device: str
    roles: frozenset[Role]
    rent_per_month: float


def recorded_volumes(predictor: Predictor, terms: PaymentTerms) -> list[RecordedVolume]:
    """The rented volumes among the recorded devices.

    What a device is, ``terms`` say, or the recording of an emulated one. Its size is that of the block
    device; owned and purchased devices have no rent.

    Raises:
        TierwiseError: two names for one recorded device.
    """
    known = recorded_profiles(predictor.run)
    volumes = []
    for roles, size_bytes in _emptied_devices(predictor.about, predictor.work.footprints):
        name = _device_name_of(roles, terms.recorded_on, known)
        if name is None or name in terms.have:
            continue
        profile = resolve_device(name).profile
        price = terms.prices.of(profile.member or profile)
        rent = cost_per_month(profile, terms.prices, size_bytes, terms.years)
        if price and price.rented and rent:
            volumes.append(RecordedVolume(name, frozenset(roles), rent))
    return volumes


def user_named_devices(run: RecordedRun, terms: PaymentTerms) -> dict[Role, str]:
    """Role -> full name of the device that ``--recorded-on`` says that it was recorded on."""
    named = {role: terms.recorded_on.get(role, terms.recorded_on.get(EVERYTHING)) for role in run.footprints}
    return {role: device for role, device in named.items() if device}


def recorded_profiles(run: RecordedRun) -> dict[Role, str]:
    """Role -> full name of the emulated device it was recorded on, where that is a profile that ships."""
    names = _names_by_summary()
    return {role: names[summary] for role, summary in run.devices.items() if summary in names}


@lru_cache
def _names_by_summary() -> dict[str, str]:
    """A recording has the text of a profile, and of its name only the summary."""
    return {
        summary: name
        for name, text in shipped_profile_texts().items()
        if (summary := tomllib.loads(text).get("summary"))
    }


def _emptied_devices(about: RecordingMetadata, footprints: Mapping[Role, int]) -> list[tuple[set[Role], int]]:
    """Roles and bytes of each device that can be given up: of all partitions that share it."""
    devices = []
    for parts in group_by_key((device.shared, device) for device in about.devices).values():
        roles = {role for part in parts for role in part.roles if role in footprints}
        if roles and not any(part.mount in _KEPT for part in parts):
            devices.append((roles, sum(part.sectors for part in parts) * SECTOR_BYTES))
    return devices


def _device_name_of(
    roles: Collection[Role], recorded_on: Mapping[str, str], known: Mapping[Role, str]
) -> str | None:
    """The name of the device of these roles; ``None`` if it has none."""
    devices = {name for role in roles if (name := recorded_on.get(role, recorded_on.get(EVERYTHING)))}
    names = devices or {known[role] for role in roles if role in known}
    if len(devices) > 1:
        raise TierwiseError(
            f"--recorded-on: {', '.join(sorted(roles))} were recorded on one device, not on "
            f"{' and '.join(sorted(devices))}",
            "give these roles one device",
        )
    return min(names, default=None)


_GIB = 1 << 30
_MONTHS_PER_YEAR = 12
Written = Mapping[Role, float]
"""Bytes a second that a load writes to the files of each role."""


class DeviceBill(StrictModel):
    """What one new device costs a month."""

    device: str
    """Its full name."""
    per_month: float
    """The sum of the parts; 0 for a device that is owned."""
    parts: list[BillPart]
    """What is paid for; empty for a device that is owned."""


@dataclass(frozen=True)
class Bill:
    """The cost of one placement, in the currency of the prices.

    Attributes:
        devices: that it adds.
        credit_per_month: rent of the recorded volumes that are given up.
        taken_along: idle roles that move too, so that a volume can be given up -> their device.
    """

    devices: Sequence[DeviceBill] = ()
    credit_per_month: float = 0.0
    taken_along: Mapping[Role, str] = field(default_factory=dict)

    @property
    def new_per_month(self) -> float:
        """Of the devices that it adds."""
        return money_sum(device.per_month for device in self.devices)

    @property
    def cost_per_month(self) -> float:
        """More than is paid now; below 0 if the placement saves money."""
        return money_sum((self.new_per_month, -self.credit_per_month))


class PlacementCosts:
    """Prices of placements of files of known sizes.

    Args:
        needed_bytes: what a device must hold of each role.
        terms: of payment.
        volumes: rented ones of the recorded run.
        idle: roles that no placement moves, since they have almost no I/O.
        written: what the recorded load writes, at the recorded rate; nothing wears out without it.
        spaces: why each role needs that, if it is known.
    """

    def __init__(
        self,
        needed_bytes: Mapping[Role, int],
        terms: PaymentTerms | None = None,
        volumes: Sequence[RecordedVolume] = (),
        idle: Collection[Role] = (),
        written: Written | None = None,
        spaces: Mapping[Role, RoleSpace] | None = None,
    ) -> None:
        self.needed_bytes = needed_bytes
        self._terms = terms or PaymentTerms()
        self.volumes, self._idle = volumes, frozenset(idle)
        self.written: Written = written or {}
        self.spaces: Mapping[Role, RoleSpace] = spaces or {}
        self._known: dict[tuple[str, int, float], DeviceBill] = {}
        self._most_bytes: dict[str, float] = {}

    @classmethod
    def of(cls, predictor: Predictor, terms: PaymentTerms | None = None) -> Self:
        """The costs of placing a recording's files.

        Raises:
            TierwiseError: two names for one recorded device.
        """
        terms = terms or PaymentTerms()
        idle, _ = roles_by_load(predictor)
        written = {role: load.written_bytes_per_s for role, load in predictor.as_recorded.io.items()}
        spaces = predictor.spaces
        needed_bytes = {role: space.size_bytes for role, space in spaces.items()}
        return cls(needed_bytes, terms, recorded_volumes(predictor, terms), idle, written, spaces)

    @property
    def currency(self) -> str:
        """Of every cost: a code of ISO 4217."""
        return self._terms.prices.currency

    @property
    def rebuildable(self) -> bool:
        """Whether files may be lost with a stop of the machine."""
        return self._terms.rebuildable

    @property
    def now_per_month(self) -> float | None:
        """Rent of the recorded volumes that can be given up; ``None`` if none is known."""
        return sum(volume.rent_per_month for volume in self.volumes) if self.volumes else None

    def size_bytes(self, placement: Mapping[Role, str]) -> dict[str, int]:
        """Bytes that each new device must hold."""
        sizes: dict[str, int] = {}
        for role, device in placement.items():
            if device != RECORDED:
                sizes[device] = sizes.get(device, 0) + self.needed_bytes.get(role, 0)
        return sizes

    def fits(self, placement: Mapping[Role, str]) -> bool:
        """Whether each device can hold its files, with headroom and after their growth, and may hold them."""
        return self.may_hold(placement) and all(
            self.holds(device, size) for device, size in self.size_bytes(placement).items()
        )

    def may_hold(self, placement: Mapping[Role, str]) -> bool:
        """Whether each device may hold its files: memory and instance stores lose them with a stop."""
        return self.rebuildable or not roles_lost_at_stop(placement)

    def allows(self, placement: Mapping[Role, str], budget_per_month: float | None) -> bool:
        """Whether a placement fits its devices and costs no more than a budget."""
        within = budget_per_month is None or self.cost_per_month(placement) <= budget_per_month
        return within and self.fits(placement)

    def cost_per_month(self, placement: Mapping[Role, str]) -> float:
        """What a placement costs more than what is paid now; below 0 if it saves money.

        Raises:
            TierwiseError: a device without a price.
        """
        return self.bill(placement).cost_per_month

    def bill(self, placement: Mapping[Role, str], written: Written | None = None) -> Bill:
        """The cost of a placement.

        Args:
            placement: device of each role.
            written: what the load writes; at the recorded rate if not given.

        A recorded volume is given up once all its roles with I/O have moved, if that saves money: idle ones
        then move to the device with most of the files that left it, unless a stop of the machine loses them
        there.

        Raises:
            TierwiseError: a device without a price.
        """
        writes = self.written if written is None else written
        moved = {role: device for role, device in placement.items() if device != RECORDED}
        bill = Bill(self._new(moved, writes))
        for volume in self.volumes:
            busy = volume.roles - self._idle
            if not busy or not busy <= moved.keys():
                continue
            sizes = self.size_bytes({role: moved[role] for role in busy})
            target = max(sorted(sizes), key=lambda device: sizes[device])
            along = dict.fromkeys(sorted(volume.roles - moved.keys()), target)
            credit = bill.credit_per_month + volume.rent_per_month
            given_up = Bill(self._new({**moved, **along}, writes), credit, {**bill.taken_along, **along})
            if self.fits({**moved, **along}) and given_up.cost_per_month <= bill.cost_per_month:
                moved |= along
                bill = given_up
        return bill

    def _new(self, placement: Mapping[Role, str], written: Written) -> list[DeviceBill]:
        writes = write_rates_by_device(placement, written)
        return [
            self.device_bill(device, size, writes[device])
            for device, size in self.size_bytes(placement).items()
        ]

    def device_bill(self, device: str, size_bytes: int, written_bytes_per_s: float = 0.0) -> DeviceBill:
        """The bill of a device that holds recorded files of some size; nothing if it is owned.

        Args:
            device: its full name.
            size_bytes: of the recorded files on it.
            written_bytes_per_s: what the load writes to it, which may wear it out.

        Raises:
            TierwiseError: a device without a price.
        """
        if device in self._terms.have:
            return DeviceBill(device=device, per_month=0.0, parts=[])
        key = device, size_bytes, written_bytes_per_s
        if key not in self._known:
            profile, prices = resolve_device(device).profile, self._terms.prices
            parts = bill_parts(profile, prices, size_bytes * self._terms.room, self._terms.years)
            if parts is None:
                raise TierwiseError(
                    f"device {device} has no price in {self.currency}",
                    f"add [devices.{profile.name}] to a file for --prices, name it in --have if it is yours, "
                    "or leave it out",
                )
            again = self._purchases(device, written_bytes_per_s) - 1.0
            bought = [part for part in parts if part.what == "purchase"] if again > 0 else []
            parts += [bill_part("replacement", part.quantity * again, part.price_each) for part in bought]
            total = money_sum(part.per_month for part in parts)
            self._known[key] = DeviceBill(device=device, per_month=total, parts=parts)
        return self._known[key]

    def _purchases(self, device: str, written_bytes_per_s: float) -> float:
        """How often a device is bought within its service life."""
        months = device_lifetime_months(device, written_bytes_per_s)
        return 1.0 if months is None else max(1.0, self._terms.years * _MONTHS_PER_YEAR / months)

    def holds(self, device: str, size_bytes: int) -> bool:
        """Whether a device can hold recorded files of some size, with headroom and after their growth."""
        return size_bytes <= self.most_bytes(device)

    def most_bytes(self, device: str) -> float:
        """Recorded files that a device can hold, with headroom and after their growth."""
        if device not in self._most_bytes:
            profile = resolve_device(device).profile
            largest_bytes = largest_gib(self._terms.prices, profile) * _GIB
            self._most_bytes[device] = min(profile.capacity_bytes, largest_bytes / self._terms.room)
        return self._most_bytes[device]


class PriceSource(StrictModel):
    """The price of one device, and how old it is."""

    device: str
    source: str
    date: str | None
    """A day, a month or a year; ``None`` for a price in a device's profile."""
    stale: bool
    """Whether it may be older than a year."""
    checked: bool
    """Whether somebody compared it with the source."""


def price_sources(devices: Sequence[str], terms: PaymentTerms, today: datetime.date) -> list[PriceSource]:
    """Source and date of the price of each device that is not owned; of an array, those of its members."""
    prices: dict[str, PriceSource] = {}
    for name in devices:
        profile = resolve_device(name).profile
        while (price := terms.prices.of(profile)) is None and profile.member:
            profile = profile.member
        if price is None or name in terms.have or profile.name in prices:
            continue
        if isinstance(price, ListedPrice):
            used = PriceSource(
                device=profile.name,
                source=price.source,
                date=price.date,
                stale=price.is_stale(today),
                checked=price.checked,
            )
        else:
            source = profile.sources.get("price", f"[price] of {profile.file}")
            used = PriceSource(device=profile.name, source=source, date=None, stale=False, checked=True)
        prices[profile.name] = used
    return list(prices.values())


def billing_notes(
    devices: Sequence[str], terms: PaymentTerms, volumes: Sequence[RecordedVolume], run: RecordedRun
) -> list[str]:
    """What the reader of the costs has to know, as sentences without a full stop."""
    notes = []
    if terms.headroom:
        notes.append(
            f"each new device has {percent_text(terms.headroom)} more space than its files: file systems "
            "take some, and a log may pass its limit for a time (--headroom)"
        )
    for name in devices:
        profile = resolve_device(name).profile
        price = terms.prices.of(profile)
        least = gib_for_speed(profile)
        if price and price.rented and name not in terms.have and least > price.least_gib:
            notes.append(
                f"{name}: billed for {least:,.0f} GiB or more, as a smaller one does not have its speed"
            )
    recorded = {
        name: resolve_device(name).profile for name in terms.recorded_on.values() if name not in terms.have
    }
    unpriced = [name for name in recorded if cost_per_month(recorded[name], terms.prices, 0) is None]
    notes += [
        f"{name} has no price in {terms.prices.currency}, so that no rent of it ends: "
        f"add [devices.{name}] to a file for --prices"
        for name in unpriced
    ]
    kinds = group_by_key(
        ((name, kind), role)
        for role, name in user_named_devices(run, terms).items()
        if (kind := run.devices.get(role, RECORDED)) not in (RECORDED, resolve_device(name).profile.summary)
    )
    notes += [
        f"rent and wear of the recorded device are those of {name}, as --recorded-on says, but "
        f"{', '.join(sorted(roles))} were recorded on an emulated disk of another kind: {kind}"
        for (name, kind), roles in kinds.items()
    ]
    recorded_as = {*recorded_profiles(run).values(), *user_named_devices(run, terms).values()}
    notes += [
        f"{name}: a further device of the type that was recorded, not the recorded one itself"
        for name in devices
        if resolve_device(name).profile.name in recorded_as and name not in terms.have
    ]
    if terms.recorded_on and not volumes and not unpriced:
        notes.append("no recorded volume is credited: none is rented, or the operating system is on it")
    profiles = [resolve_device(name).profile for name in devices]
    profiles += [profile.member for profile in profiles if profile.member]
    known = {base.name for profile in profiles for base in (profile, *profile.likes)} | set(shipped_names())
    notes += [
        f"{terms.prices.file}: [devices.{name}] is none of these devices, and has no effect"
        for name in terms.prices.own
        if name not in known
    ]
    return notes
