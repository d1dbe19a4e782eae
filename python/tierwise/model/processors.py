"""How many processors this process may use, and how many a task in it may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath

_granted: ContextVar[int | None] = ContextVar("_granted", default=None)
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def usable() -> int:
    """Processors for the work at hand: those of :func:`granted`, else those of this process; at least 1.

    A process has those of its CPU affinity, and no more than the CPU quota of its control group and of the
    groups above it allows, rounded up. Source: sched_getaffinity(2), and the kernel's cgroup-v2 ``cpu.max``
    and cgroup-v1 ``cpu.cfs_quota_us``.
    """
    if (share := _granted.get()) is not None:
        return share
    affinity = len(os.sched_getaffinity(0))
    quotas = [quota for group in _groups() if (quota := _quota(group)) is not None]
    return max(1, min([affinity, *(-int(-quota // 1) for quota in quotas)]))


@contextmanager
def granted(count: int) -> Iterator[None]:
    """Let what the calling thread does in this context use ``count`` processors, at least 1."""
    token = _granted.set(max(1, count))
    try:
        yield
    finally:
        _granted.reset(token)


def _groups() -> Iterator[Path]:
    """Directories of the control groups with a CPU quota that hold this process, from the inside outwards."""
    try:
        lines = _OWN_GROUPS.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / "cpu" if controllers else _CGROUPS
        group = PurePosixPath(path.lstrip("/"))
        for one in (group, *group.parents):
            if ".." not in one.parts:  # a group outside of this namespace of control groups
                yield root / one


def _quota(group: Path) -> float | None:
    """Processors that a group's quota allows; ``None`` without one."""
    try:
        if (unified := group / "cpu.max").exists():
            quota, period = unified.read_text("ascii").split()
        else:
            quota, period = (
                (group / f"cpu.cfs_{name}_us").read_text("ascii").strip() for name in ("quota", "period")
            )
        return float(quota) / float(period) if quota not in ("max", "-1") else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
