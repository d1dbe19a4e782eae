"""Control groups: one for each process that tierwise starts, and memory of their own for disk servers.

A process's group is one of block I/O too. A loop device has a worker for each such group, and the root's for
flushes, which come from none: in the root group reads and writes would wait behind every flush.

Both are used where the machine has them and the caller may make them, and done without elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from tierwise.errors import TierwiseError

ROOT = Path("/sys/fs/cgroup")
PARENT = "tierwise"
_NOTED_WITHIN_S = 2
_JOINED_WITHIN_S = 5


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


def _block_io() -> Path | None:
    """Mount point of a hierarchy of its own for block I/O; elsewhere the unified one has that controller."""
    return ROOT / "blkio" if (ROOT / "blkio" / "cgroup.procs").exists() else None


def _make(hierarchy: Path | None, name: str) -> Path | None:
    """Make a group, or give ``None`` where that is not possible."""
    if hierarchy is None or os.geteuid() != 0:
        return None
    try:
        (hierarchy / PARENT).mkdir(exist_ok=True)
        if hierarchy == _unified():
            _pass_on(hierarchy / PARENT, ["io", *(["memory"] if hierarchy == _memory() else [])])
        (hierarchy / PARENT / name).mkdir(exist_ok=True)
    except OSError:
        return None
    return hierarchy / PARENT / name


def _pass_on(group: Path, controllers: list[str]) -> None:
    """Let the groups within a group have controllers, as far as it has them itself."""
    for controller in controllers:
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


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


def enter_block_io_group(name: str, pid: int) -> None:
    """Move a process that was just started, with what it will fork, to a group for block I/O of that name."""
    group = _make(_block_io(), name)
    if group is not None:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text(str(pid))


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
    """Remove the groups of a process that has ended."""
    for hierarchy in (_unified(), _block_io()):
        _remove(hierarchy, name)


def limits_memory() -> bool:
    """Whether there is a memory controller."""
    return _memory() is not None


def make_memory_group(name: str) -> Path | None:
    """Make a group of the memory controller alone, or ``None`` where it is part of the unified hierarchy."""
    hierarchy = _memory()
    return None if hierarchy == _unified() else _make(hierarchy, name)


def remove_memory_group(name: str) -> None:
    """Remove such a group; nothing may run in it."""
    _remove(_memory(), name)


def joined_group_of(pid: int) -> Path:
    """The group of the unified hierarchy that was made for a process, once the process has joined it.

    A process begins in the group of its starter, which is no group of tierwise's to limit.

    Raises:
        TierwiseError: if it does not join one in time.
    """
    deadline = time.monotonic() + _JOINED_WITHIN_S
    while time.monotonic() < deadline:
        group = _unified_group_of(pid)
        if group is not None and group.parent.name == PARENT:
            return group
        time.sleep(0.001)
    raise TierwiseError(f"process {pid} is in no control group of tierwise's", "see tierwise doctor")


def _unified_group_of(pid: int) -> Path | None:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    found = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    return None if found is None else (_unified() or ROOT) / found


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
