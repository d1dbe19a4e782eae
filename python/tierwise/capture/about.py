"""The machine and target sections of a recording, written before the recorder adds its results."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from tierwise import _core
from tierwise.capture.target import Target
from tierwise.host import machine


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
        "warnings": target.rules.warnings(target.role_of is None),
    }
