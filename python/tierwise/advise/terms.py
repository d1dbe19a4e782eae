"""How storage is paid for: prices, owned devices, room to spare, years of service, recorded volumes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tierwise.device_models.prices import YEARS, Prices
from tierwise.model.errors import TierwiseError
from tierwise.model.names import names_in
from tierwise.model.placement import EVERYTHING, parse_place
from tierwise.predict import resolve

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FACTOR = re.compile(r"\d+(?:\.\d+)?")
_MOST_PERCENT = 10_000
_MOST_YEARS = 50


@dataclass(frozen=True)
class Terms:
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

    prices: Prices = field(default_factory=Prices.read)
    have: tuple[str, ...] = ()
    headroom: float = 0.0
    growth: float = 0.0
    years: float = YEARS
    recorded_on: Mapping[str, str] = field(default_factory=dict)
    rebuildable: bool = False

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
        if not 0 < years <= _MOST_YEARS:
            raise TierwiseError(f"--years: {years:g} is not above 0 and at most {_MOST_YEARS}", "give 3 or 5")
        return cls(
            prices=Prices.read(prices),
            have=tuple(dict.fromkeys(resolve(name).name for name in names_in(have))),
            headroom=parse_share(headroom, "--headroom"),
            growth=_growth(growth),
            years=years,
            recorded_on=parse_recorded_on(recorded_on),
            rebuildable=rebuildable,
        )

    @property
    def room(self) -> float:
        """Size that a new device needs, as a multiple of the recorded files."""
        return (1 + self.headroom) * (1 + self.growth)


def parse_share(text: str, option: str) -> float:
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


def _growth(text: str) -> float:
    """``50%``, or ``1.5`` as in ``tierwise predict``: a multiple of the recorded files."""
    if not _FACTOR.fullmatch(text.strip()):
        return parse_share(text, "--growth")
    if not 1 <= (factor := float(text)) <= _MOST_PERCENT / 100:
        raise TierwiseError(f"--growth: {text} is not from 1 to {_MOST_PERCENT // 100}", "write 1.5 or 50%")
    return factor - 1


def parse_recorded_on(text: str) -> dict[str, str]:
    """Role, or ``all``, to the full name of its device, in ``gp3`` or ``log=io2,all=gp3``."""
    if not text:
        return {}
    places = parse_place(text, "--recorded-on") if "=" in text else {EVERYTHING: text.strip()}
    return {role: resolve(device).name for role, device in places.items()}
