"""Monthly cost of a placement: its new devices, less the rent of the recorded volumes that it empties."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from tierwise.advise.endurance import lifetime_months, written_bytes_per_s
from tierwise.advise.recorded_volumes import RecordedVolume, recorded_volumes
from tierwise.advise.terms import Terms
from tierwise.device_models.billing import cost_per_month
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import RECORDED, Prediction, Predictor, resolve
from tierwise.predict.ranking import by_load, placement_of

_GIB = 1 << 30
_MONTHS_PER_YEAR = 12


@dataclass(frozen=True)
class Bill:
    """The cost of one placement, in the currency of the prices.

    Attributes:
        new_per_month: of the devices that it adds.
        credit_per_month: rent of the recorded volumes that are given up.
        taken_along: idle roles that move too, so that a volume can be given up -> their device.
    """

    new_per_month: float
    credit_per_month: float = 0.0
    taken_along: Mapping[Role, str] = field(default_factory=dict)

    @property
    def cost_per_month(self) -> float:
        """More than is paid now; below 0 if the placement saves money."""
        return self.new_per_month - self.credit_per_month


class Costs:
    """Prices of placements of files of known sizes.

    Args:
        footprints: bytes of the files of each role.
        terms: of payment.
        volumes: rented ones of the recorded run.
        idle: roles that no placement moves, since they have almost no I/O.
    """

    def __init__(
        self,
        footprints: Mapping[Role, int],
        terms: Terms | None = None,
        volumes: Sequence[RecordedVolume] = (),
        idle: Collection[Role] = (),
    ) -> None:
        """Store the sizes and the terms."""
        self._footprints = footprints
        self._terms = terms or Terms()
        self.volumes, self._idle = volumes, frozenset(idle)
        self._known: dict[tuple[str, int], float] = {}
        self._most_bytes: dict[str, float] = {}

    @classmethod
    def of(cls, predictor: Predictor, terms: Terms | None = None) -> Self:
        """The costs of placing a recording's files.

        Raises:
            TierwiseError: two names for one recorded device.
        """
        terms = terms or Terms()
        idle, _ = by_load(predictor)
        return cls(predictor.work.footprints, terms, recorded_volumes(predictor, terms), idle)

    @property
    def currency(self) -> str:
        """Of every cost: a code of ISO 4217."""
        return self._terms.prices.currency

    @property
    def now_per_month(self) -> float | None:
        """Rent of the recorded volumes that can be given up; ``None`` if none is known."""
        return sum(volume.rent_per_month for volume in self.volumes) if self.volumes else None

    def size_bytes(self, placement: Mapping[Role, str]) -> dict[str, int]:
        """Bytes of the recorded files on each new device."""
        sizes: dict[str, int] = {}
        for role, device in placement.items():
            if device != RECORDED:
                sizes[device] = sizes.get(device, 0) + self._footprints.get(role, 0)
        return sizes

    def fits(self, placement: Mapping[Role, str]) -> bool:
        """Whether each device can hold its files with headroom, and after their growth."""
        return all(self.holds(device, size) for device, size in self.size_bytes(placement).items())

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

    def bill_of(self, prediction: Prediction) -> Bill:
        """The cost of a predicted placement: a purchased device is bought again when its writes wear it out.

        Raises:
            TierwiseError: a device without a price.
        """
        return self.bill(placement_of(prediction), written_bytes_per_s(prediction))

    def bill(self, placement: Mapping[Role, str], written: Mapping[str, float] | None = None) -> Bill:
        """The cost of a placement.

        Args:
            placement: device of each role.
            written: bytes that the load writes to each new device a second; without it nothing wears out.

        A recorded volume is given up once all its roles with I/O have moved, if that saves money: idle ones
        then move to the device with most of the files that left it.

        Raises:
            TierwiseError: a device without a price.
        """
        moved = {role: device for role, device in placement.items() if device != RECORDED}
        bill = Bill(self._new(moved, written or {}))
        for volume in self.volumes:
            busy = volume.roles - self._idle
            if not busy or not busy <= moved.keys():
                continue
            sizes = self.size_bytes({role: moved[role] for role in busy})
            target = max(sorted(sizes), key=lambda device: sizes[device])
            along = dict.fromkeys(sorted(volume.roles - moved.keys()), target)
            new = self._new({**moved, **along}, written or {})
            if self.fits({**moved, **along}) and new - volume.rent_per_month <= bill.new_per_month:
                moved |= along
                bill = Bill(new, bill.credit_per_month + volume.rent_per_month, {**bill.taken_along, **along})
        return bill

    def _new(self, placement: Mapping[Role, str], written: Mapping[str, float]) -> float:
        return sum(
            self.of_written_device(device, size, written.get(device, 0.0))
            for device, size in self.size_bytes(placement).items()
        )

    def of_written_device(self, device: str, size_bytes: int, written_bytes_per_s: float) -> float:
        """Cost a month of a device that is bought again when its writes wear it out.

        Raises:
            TierwiseError: a device without a price.
        """
        return self.of_device(device, size_bytes) * self._purchases(device, written_bytes_per_s)

    def _purchases(self, device: str, written_bytes_per_s: float) -> float:
        """How often a device is bought within its service life; 1 for a rented one."""
        profile, months = resolve(device).profile, lifetime_months(device, written_bytes_per_s)
        price = self._terms.prices.of(profile.member or profile)
        if months is None or price is None or price.rented:
            return 1.0
        return max(1.0, self._terms.years * _MONTHS_PER_YEAR / months)

    def of_device(self, device: str, size_bytes: int) -> float:
        """Cost a month of a device that holds recorded files of some size; 0 if it is owned.

        Raises:
            TierwiseError: a device without a price.
        """
        if device in self._terms.have:
            return 0.0
        if (device, size_bytes) not in self._known:
            profile, prices = resolve(device).profile, self._terms.prices
            cost = cost_per_month(profile, prices, size_bytes * self._terms.room, self._terms.years)
            if cost is None:
                raise TierwiseError(
                    f"device {device} has no price in {self.currency}",
                    f"add [devices.{profile.name}] to a file for --prices, name it in --have if it is yours, "
                    "or leave it out",
                )
            self._known[device, size_bytes] = cost
        return self._known[device, size_bytes]

    def holds(self, device: str, size_bytes: int) -> bool:
        """Whether a device can hold recorded files of some size, with headroom and after their growth."""
        if device not in self._most_bytes:
            profile = resolve(device).profile
            price = self._terms.prices.of(profile)
            largest_bytes = price.most_gib * _GIB if price and price.most_gib else profile.capacity_bytes
            self._most_bytes[device] = min(profile.capacity_bytes, largest_bytes / self._terms.room)
        return size_bytes <= self._most_bytes[device]
