"""The machine and target sections of a recording, written before the recorder adds its results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from tierwise.capture.devices import Devices
from tierwise.capture.target import Target
from tierwise.host import machine
from tierwise.model.roles import Role

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_RESIDENT = re.compile(r"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)


def prepared(target: Target) -> dict[str, Any]:
    """The sections that are known when a recording begins."""
    here = machine.describe()
    limits = [limit for pid in target.processes()[:1] if (limit := memory_limit_bytes(pid)) is not None]
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


def memory_limit_bytes(pid: int) -> int | None:
    """Lowest memory limit of the control groups that a process is in; ``None`` if there is none."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":
            limits += _limits(_CGROUP_ROOT / "memory", group, "memory.limit_in_bytes")
        elif controllers == "":
            limits += _limits(_CGROUP_ROOT, group, "memory.max")
            limits += _limits(_CGROUP_ROOT / "unified", group, "memory.max")
    return min(limits, default=None)


def processes_bytes(pids: Iterable[int]) -> int:
    """Memory that processes hold: the private memory of each, plus the largest shared part of one."""
    private = shared = 0
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text("utf-8")
        except OSError:
            continue
        sizes = {name: int(size) << 10 for name, size in _RESIDENT.findall(status)}
        private += sizes.get("RssAnon", 0)
        shared = max(shared, sizes.get("RssShmem", 0))
    return private + shared


def _limits(hierarchy: Path, group: str, name: str) -> list[int]:
    """Limits of a group and of its ancestors."""
    found = []
    folder = hierarchy / group.lstrip("/")
    while folder.is_relative_to(hierarchy):
        file = folder / name
        text = file.read_text("ascii").strip() if file.exists() else ""
        if re.fullmatch(r"\d+", text) and int(text) < 1 << 60:
            found.append(int(text))
        folder = folder.parent
    return found
