"""Sentences on the reliability of I/O by role on shared real devices."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.report import numbers
from tierwise.results import DeviceInfo, RoleIo, RunResult

UNATTRIBUTED = "unattributed"
"""Row name for I/O without a role: file system journal and metadata, other programs' files, all flushes."""


def io_notes(runs: Sequence[RunResult]) -> list[str]:
    """One sentence for each device, about its worst run."""
    found: dict[str, DeviceInfo] = {}
    for run in runs:
        for device in run.devices:
            if device.untraced is None and device.not_by_role is None:
                continue
            worst = found.get(device.name)
            if worst is None or _untraced_share(device) > _untraced_share(worst):
                found[device.name] = device
    return [_note(device) for _, device in sorted(found.items())]


def _note(device: DeviceInfo) -> str:
    if device.not_by_role is not None:
        return f"roles share {device.name}, which is counted as a whole: {device.not_by_role}."
    return (
        f"roles that share {device.name} are told apart by where their files lie; with what is unattributed "
        f"they differ from the kernel’s counters by {numbers.percent(_untraced_share(device))} of its bytes."
    )


def _untraced_share(device: DeviceInfo) -> float:
    """Bytes known only to the counters, or only to the events, over all bytes by the counters."""
    if device.untraced is None or device.io is None:
        return 0.0
    return abs(_bytes(device.untraced)) / max(_bytes(device.io), 1)


def _bytes(io: RoleIo) -> int:
    return io.read_bytes + io.write_bytes
