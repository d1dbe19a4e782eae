"""Terraform: the volumes that an advice rents, by data/volumes.toml."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from tierwise.device_models.profiles import Profile
from tierwise.model.input_files import DATA, shipped
from tierwise.model.placement import Role
from tierwise.predict import resolve
from tierwise.report.change.change import Change, comment, hcl, joined

_VOLUMES = DATA / "volumes.toml"
_MIB_PER_MB = 1e6 / 2**20
_ROUNDING = 1e-6


def volumes(change: Change) -> str:
    """A file with a resource for each rented volume, and a comment for any other new device."""
    variables: dict[str, str] = {}
    parts = []
    for device, roles in change.devices.items():
        profile = resolve(device).profile
        volume = None if device in change.owned else resource_of(profile)
        if volume is None:
            why = "you own it" if device in change.owned else "it is no volume that Terraform can rent here"
            size = f"{change.device_gib(device)} GiB"
            parts.append([comment(f"{', '.join(roles)}: {profile.name} for {size} has no resource: {why}.")])
        else:
            variables |= volume["variables"]
            parts.append(list(_resource(change, device, profile, roles, volume)))
    header = [
        comment(
            f"New volumes for {change.engine}, sized by tierwise advise. Attaching, file system and mount"
        ),
        comment("are yours to add; the files move by --emit ansible."),
    ]
    declared = [
        [f'variable "{name}" {{', f"  description = {hcl(text)}", "  type        = string", "}"]
        for name, text in variables.items()
    ]
    return joined(line for part in [header, *declared, *parts] for line in [*part, ""]).rstrip("\n") + "\n"


def resource_of(profile: Profile) -> Mapping[str, Any] | None:
    """The resource of a profile, or of the first that it is like; ``None`` if no provider rents it out."""
    known = shipped(_VOLUMES)
    return next((known[name] for name in (profile.name, *profile.likes) if name in known), None)


def _resource(
    change: Change, device: str, profile: Profile, roles: list[Role], volume: Mapping[str, Any]
) -> Iterator[str]:
    limits: Mapping[str, Any] = profile.fields.get("limits", {})
    mb_per_s = limits.get("mb_per_s", {}).get("provisioned", 0.0)
    arguments = Template(volume["arguments"]).substitute(
        label=hcl(f"{change.engine} {' '.join(roles)}"),
        slug="-".join(roles),
        size_gib=change.device_gib(device),
        iops=_up(limits.get("iops", {}).get("provisioned", 0.0)),
        mib_per_s=_up(mb_per_s * _MIB_PER_MB),
        mb_per_s=_up(mb_per_s),
    )
    yield comment(f"{', '.join(roles)}: {profile.summary} ({profile.name})")
    yield f'resource "{volume["resource"]}" "{"_".join(roles)}" {{'
    yield from (f"  {line}" for line in arguments.strip().splitlines())
    # The files of a later advice have the same names: another type would replace a volume that holds data.
    yield from ("", "  lifecycle {", "    prevent_destroy = true", "  }", "}")


def _up(value: float) -> int:
    """Rounded up, but for the error of a conversion of units."""
    return math.ceil(value - _ROUNDING)
