"""Control groups: one for each process that tierwise starts, and memory of their own for disk servers.

Both are used where the machine has them and the caller may make them, and done without elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PARENT = "tierwise"
_NOTED_WITHIN_S = 2


def _unified() -> Path | None:
    """Mount point of the version 2 hierarchy, alone or beside version 1."""
    for path in (ROOT, ROOT / "unified"):
        if (path / "cgroup.controllers").exists():
            return path
    return None


def _memory() -> Path | None:
    """Mount point of the hierarchy that has the memory controller."""
    if (ROOT / "memory" / "memory.limit_in_bytes").exists() or (ROOT / "memory" / "cgroup.procs").exists():
        return ROOT / "memory"
    unified = _unified()
    if unified and "memory" in (unified / "cgroup.subtree_control").read_text().split():
        return unified
    return None


def _make(hierarchy: Path | None, name: str) -> Path | None:
    """Make a group, or give ``None`` where that is not possible."""
    if hierarchy is None or os.geteuid() != 0:
        return None
    try:
        (hierarchy / PARENT).mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            if hierarchy == _memory() == _unified():
                (hierarchy / PARENT / "cgroup.subtree_control").write_text("+memory")
        (hierarchy / PARENT / name).mkdir(exist_ok=True)
    except OSError:
        return None
    return hierarchy / PARENT / name


def _remove(hierarchy: Path | None, name: str) -> None:
    """Remove an empty group, and the parent of all of them with the last.

    A process that has ended stays in its group until its parent has taken note; that is waited for.
    """
    if hierarchy is None:
        return
    group = hierarchy / PARENT / name
    deadline = time.monotonic() + _NOTED_WITHIN_S
    while group.exists() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)
    with contextlib.suppress(OSError):
        (hierarchy / PARENT).rmdir()


def make_process_group(name: str) -> int | None:
    """Make a group for one process and its descendants.

    Gives a descriptor, or ``None`` where there are no groups. Whoever writes ``0`` to it joins the group,
    also after root was given up.
    """
    group = _make(_unified(), name)
    return None if group is None else os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)


def process_group_members(name: str) -> list[int]:
    """Pids in the group of that name, zombies included; none if there is no such group."""
    unified = _unified()
    if unified is None:
        return []
    try:
        return [int(pid) for pid in (unified / PARENT / name / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def remove_process_group(name: str) -> None:
    """Remove the group of a process that has ended."""
    _remove(_unified(), name)


def enter_server_groups(name: str) -> None:
    """Move the calling process, a disk server, out of its starter's groups into groups of its own.

    A server whose memory is charged to the group of its users deadlocks: the users wait for memory,
    the memory waits for dirty pages to be written, and the server that would write them waits for memory.
    A server in the process group of its starter would end with the starter, before its users.
    """
    for hierarchy in {_memory(), _unified()}:
        group = _make(hierarchy, name)
        if group is not None:
            with contextlib.suppress(OSError):
                (group / "cgroup.procs").write_text("0")


def remove_server_groups(name: str) -> None:
    """Remove the groups of a server that has ended."""
    for hierarchy in {_memory(), _unified()}:
        _remove(hierarchy, name)
