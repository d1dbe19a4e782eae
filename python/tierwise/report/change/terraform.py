"""Terraform: the volumes that an advice rents, by data/volumes.toml."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from tierwise.device_models.profiles import DeviceProfile
from tierwise.model.input_files import DATA, read_shipped_toml
from tierwise.model.placement import Role
from tierwise.predict import resolve_device
from tierwise.report.change.placement_change import PlacementChange, comment_line, hcl_string, text_of_lines

_VOLUMES = DATA / "volumes.toml"
_MIB_PER_MB = 1e6 / 2**20
_ROUNDING = 1e-6


def terraform_volumes(change: PlacementChange) -> str:
    """A file with a resource for each rented volume, and a comment for any other new device."""
    variables: dict[str, str] = {}
    parts = []
    for device, roles in change.devices.items():
        profile = resolve_device(device).profile
        volume = None if device in change.owned else terraform_resource_of(profile)
        if volume is None:
            why = "you own it" if device in change.owned else "it is no volume that Terraform can rent here"
            size = f"{change.device_gib(device)} GiB"
            parts.append(
                [comment_line(f"{', '.join(roles)}: {profile.name} for {size} has no resource: {why}.")]
            )
        else:
            variables |= volume["variables"]
            parts.append(list(_resource(change, device, profile, roles, volume)))
    header = [
        comment_line(
            f"New volumes for {change.engine}, sized by tierwise advise. Attaching, file system and mount"
        ),
        comment_line("are yours to add; the files move by --emit ansible."),
    ]
    declared = [
        [f'variable "{name}" {{', f"  description = {hcl_string(text)}", "  type        = string", "}"]
        for name, text in variables.items()
    ]
    return (
        text_of_lines(line for part in [header, *declared, *parts] for line in [*part, ""]).rstrip("\n")
        + "\n"
    )


def terraform_resource_of(profile: DeviceProfile) -> Mapping[str, Any] | None:
    """The resource of a profile, or of the first that it is like; ``None`` if no provider rents it out."""
    known = read_shipped_toml(_VOLUMES)
    return next((known[base.name] for base in (profile, *profile.likes) if base.name in known), None)


def _resource(
    change: PlacementChange, device: str, profile: DeviceProfile, roles: list[Role], volume: Mapping[str, Any]
) -> Iterator[str]:
    limits: Mapping[str, Any] = profile.fields.get("limits", {})
    mb_per_s = limits.get("mb_per_s", {}).get("provisioned", 0.0)
    arguments = Template(volume["arguments"]).substitute(
        label=hcl_string(f"{change.engine} {' '.join(roles)}"),
        slug="-".join(roles),
        size_gib=change.device_gib(device),
        iops=_up(limits.get("iops", {}).get("provisioned", 0.0)),
        mib_per_s=_up(mb_per_s * _MIB_PER_MB),
        mb_per_s=_up(mb_per_s),
    )
    yield comment_line(f"{', '.join(roles)}: {profile.summary} ({profile.name})")
    yield f'resource "{volume["resource"]}" "{"_".join(roles)}" {{'
    yield from (f"  {line}" for line in arguments.strip().splitlines())
    # The files of a later advice have the same names: another type would replace a volume that holds data.
    yield from ("", "  lifecycle {", "    prevent_destroy = true", "  }", "}")


def _up(value: float) -> int:
    """Rounded up, but for the error of a conversion of units."""
    return math.ceil(value - _ROUNDING)
