"""The machine and target sections of a recording, written before the recorder adds its results."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from tierwise import _core
from tierwise.capture.devices import Devices
from tierwise.capture.target import Target
from tierwise.host import machine
from tierwise.model.roles import Role


def prepared(target: Target) -> dict[str, Any]:
    """The sections that are known when a recording begins."""
    here = machine.describe()
    limits = [limit for pid in target.processes()[:1] if (limit := _core.memory_limit_bytes(pid)) is not None]
    return {
        "format": "tierwise recording",
        "version": 1,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "tierwise": metadata.version("tierwise"),
        "engine": target.engine or target.rules.engine,
        "engine_version": target.version,
        "settings": dict(target.settings),
        "machine": {
            "cores": here.cores,
            "memory_bytes": min([here.memory_bytes, *limits]),
            "processor": here.cpu_model,
            "kernel": here.kernel,
        },
        "duration_s": 0.0,
        "bursts": [],
        "devices": [],
        "losses": {"recorded_events": 0, "lost_events": 0},
        "cost": None,
        "transactions": None,
        "foreign_cpu_share": 0.0,
        "checks": [],
        "warnings": target.rules.parsed.warnings(target.role_of == target.rules.role_of),
    }


def devices_json(devices: Devices) -> list[dict[str, Any]]:
    """Devices as ``about.json`` has them."""
    known = zip(devices.known, devices.shared, strict=True)
    return [{**device.described, "shared": shared} for device, shared in known]


def warnings_of(devices: Devices) -> list[str]:
    """Warnings that only the recorder can give and every use of the recording must repeat; free of names."""
    used = [device for device in devices.known if device.roles]
    if not used:
        return ["no file of the database lies on a block device"]
    found = [
        f"files of {_listed(roles)} lie on {kind}, which tierwise knows no block device of"
        for kind, roles in devices.without.items()
    ]
    for device in used:
        roles, untold = _listed(device.roles), device.untold
        if untold is not None:
            found.append(
                f"requests for {roles} are not recorded: the kernel tells none to {untold}, "
                "and what is below it has other sectors"
            )
        elif not device.tells_places:
            found.append(
                f"requests for {roles} may be counted for wrong files: "
                f"{device.chain[0].kind} does not tell where a file lies"
            )
    return found


def _listed(roles: set[Role]) -> str:
    return ", ".join(str(role) for role in Role if role in roles)


def directory_sizes(pid: int, target: Target) -> dict[str, Any]:
    """Size of all files in the working directory of a server, and by role; nothing if it is gone.

    The rules say whether that is the data directory. Links in it lead to tablespaces or a log elsewhere.

    Args:
        pid: first process of the server.
        target: the server.
    """
    sizes = _core.working_directory_sizes(pid, target.root, target.role_of)
    return {} if sizes is None else {"data_directory_bytes": sizes[0], "role_bytes": sizes[1]}
