"""Partitions of the emulated disks of this machine: loop devices, of which sysfs tells no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tierwise.host import ledger
from tierwise.host.disk import teardown
from tierwise.model.units import SECTOR_BYTES


def emulated_partitions() -> list[dict[str, Any]]:
    """All of them, as the compiled core takes them; those of a disk half taken down are left out."""
    found = []
    for entry in ledger.entries("disk"):
        try:
            text = teardown.config_file(Path(entry.facts["home"])).read_text("utf-8")
        except OSError:
            continue
        profile, server, first = json.loads(text)["profile"], entry.facts.get("server"), 0
        for part in entry.facts["partitions"]:
            found.append(
                {
                    "loop": part["loop"].removeprefix("/dev/"),
                    "disk": entry.name,
                    "first_sector": first,
                    "profile": profile,
                    "server_pid": server and server["pid"],
                }
            )
            first += part["size_bytes"] // SECTOR_BYTES
    return found
