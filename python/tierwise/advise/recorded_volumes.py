"""The rented volumes of the recorded run, whose rent ends once nothing is on them any more."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tierwise.advise.terms import Terms
from tierwise.device_models.prices import cost_per_month
from tierwise.device_models.profiles import texts
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import EVERYTHING, Role
from tierwise.model.units import SECTOR_BYTES
from tierwise.predict import Predictor, RecordedRun, resolve
from tierwise.recording import About

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


def recorded_volumes(predictor: Predictor, terms: Terms) -> list[RecordedVolume]:
    """The rented volumes among the recorded devices.

    What a device is, ``terms`` say, or the recording of an emulated one. Its size is that of the block
    device; owned and purchased devices have no rent.

    Raises:
        TierwiseError: two names for one recorded device.
    """
    known = recorded_profiles(predictor.run)
    volumes = []
    for roles, size_bytes in _devices(predictor.about, predictor.work.footprints):
        name = _name_of(roles, terms.recorded_on, known)
        if name is None or name in terms.have:
            continue
        profile = resolve(name).profile
        price = terms.prices.of(profile.member or profile)
        rent = cost_per_month(profile, terms.prices, size_bytes, terms.years)
        if price and price.rented and rent:
            volumes.append(RecordedVolume(name, frozenset(roles), rent))
    return volumes


def recorded_profiles(run: RecordedRun) -> dict[Role, str]:
    """Role -> full name of the emulated device it was recorded on, where that is a profile that ships."""
    names = _names_by_summary()
    return {role: names[summary] for role, summary in run.devices.items() if summary in names}


@lru_cache
def _names_by_summary() -> dict[str, str]:
    """A recording has the text of a profile, and of its name only the summary."""
    return {
        summary: name for name, text in texts().items() if (summary := tomllib.loads(text).get("summary"))
    }


def _devices(about: About, footprints: Mapping[Role, int]) -> list[tuple[set[Role], int]]:
    """Roles and bytes of each device that can be given up: of all partitions that share it."""
    groups: dict[int, list[int]] = {}
    for number, device in enumerate(about.devices):
        groups.setdefault(device.shared, []).append(number)
    devices = []
    for numbers in groups.values():
        parts = [about.devices[number] for number in numbers]
        roles = {role for part in parts for role in part.roles if role in footprints}
        if roles and not any(part.mount in _KEPT for part in parts):
            devices.append((roles, sum(part.sectors for part in parts) * SECTOR_BYTES))
    return devices


def _name_of(
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
