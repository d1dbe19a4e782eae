"""Control groups: one for each process that tierwise starts, with limited memory; others for disk servers.

A process also gets its own block I/O group. A loop device has one worker for each such group; the root
group's worker handles flushes, which carry no group. In the root group, I/O would wait behind every flush.

Both need root and kernel support; without them, tierwise runs without groups.

Version 2 has one hierarchy. A group has a controller only if its parent delegates it. The root group
delegates the controllers that the owner uses; tierwise adds the ones it needs while its groups exist.

A working set larger than memory can thus be studied at small scale. A process's reads and writes are charged
to its group, also during the load phase: the page cache left by loading counts against the limit. Servers of
emulated disks have their own groups, because a server charged to the group of its users deadlocks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from tierwise.host import cpu, ledger
from tierwise.model.errors import TierwiseError, os_errors

ROOT = Path("/sys/fs/cgroup")
PARENT = "tierwise"
_CONTROLLERS = ("io", "memory")
_ADDED = "trusted.tierwise.added"
"""Attribute of the parent group: controllers that tierwise enabled in the root group."""
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
    return unified if unified and "memory" in _controllers(unified) else None


def _block_io() -> Path | None:
    """Mount point of the hierarchy that has the controller of block I/O."""
    if (ROOT / "blkio" / "cgroup.procs").exists():
        return ROOT / "blkio"
    unified = _unified()
    return unified if unified and "io" in _controllers(unified) else None


def _controllers(group: Path, file: str = "cgroup.controllers") -> set[str]:
    return set((group / file).read_text("ascii").split())


def _make(hierarchy: Path | None, name: str) -> Path | None:
    """Make a group, or give ``None`` where that is not possible."""
    if hierarchy is None or os.geteuid() != 0:
        return None
    try:
        (hierarchy / PARENT).mkdir(exist_ok=True)
        if hierarchy == _unified():
            _delegate_controllers(hierarchy)
        (hierarchy / PARENT / name).mkdir(exist_ok=True)
    except OSError:
        return None
    return hierarchy / PARENT / name


def _delegate_controllers(root: Path) -> None:
    """Delegate the machine's controllers to tierwise's groups; ignore what the kernel refuses."""
    added = _controllers(root).intersection(_CONTROLLERS) - _controllers(root, "cgroup.subtree_control")
    with contextlib.suppress(OSError):
        if added:
            os.setxattr(root / PARENT, _ADDED, " ".join({*added, *_added(root)}).encode("ascii"))
            _switch_controllers(root, "+", added)
    _switch_controllers(root / PARENT, "+", _controllers(root / PARENT).intersection(_CONTROLLERS))


def _switch_controllers(group: Path, sign: Literal["+", "-"], controllers: Iterable[str]) -> None:
    """Enable (``+``) or disable (``-``) controllers for child groups; ignore what the kernel refuses."""
    for controller in controllers:
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"{sign}{controller}")


def _added(root: Path) -> list[str]:
    try:
        return os.getxattr(root / PARENT, _ADDED).decode("ascii").split()
    except OSError:
        return []


def _remove(hierarchy: Path | None, name: str) -> None:
    """Remove an empty group, and the parent group after its last child.

    A process that has ended stays in its group until its parent reaps it; wait for that.
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
    added = _added(hierarchy)
    with contextlib.suppress(OSError):
        (hierarchy / PARENT).rmdir()
        _switch_controllers(hierarchy, "-", added)


def make_process_cgroup(name: str) -> None:
    """Make a group for one process and its descendants, where there are groups."""
    _make(_unified(), name)


def enter_process_cgroup(name: str, pid: int) -> None:
    """Move a process, which has no children yet, into the group made for it."""
    unified = _unified()
    if unified is not None:
        with contextlib.suppress(OSError):
            (unified / PARENT / name / "cgroup.procs").write_text(str(pid))


def enter_block_io_cgroup(name: str, pid: int) -> None:
    """Move a just-started process and its future children to the block I/O group of that name."""
    hierarchy = _block_io()
    group = None if hierarchy == _unified() else _make(hierarchy, name)
    if group is not None:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text(str(pid))


def process_cgroup_members(name: str) -> list[int]:
    """Pids in the group of that name, zombies included; none if there is no such group."""
    unified = _unified()
    return [] if unified is None else cgroup_members(unified / PARENT / name)


def cgroup_members(group: Path) -> list[int]:
    """Pids in a group, zombies included; none if there is no such group."""
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text("ascii").split()]
    except OSError:
        return []


def remove_process_cgroup(name: str) -> None:
    """Remove the groups of a process that has ended."""
    for hierarchy in {_unified(), _block_io()}:
        _remove(hierarchy, name)


def memory_cgroup_version() -> int | None:
    """Version of the control groups that have the memory controller; ``None`` if none has."""
    return _version(_memory())


def block_io_cgroup_version() -> int | None:
    """Version of the control groups that have the controller of block I/O; ``None`` if none has."""
    return _version(_block_io())


def _version(hierarchy: Path | None) -> int | None:
    return None if hierarchy is None else 2 if hierarchy == _unified() else 1


def wait_until_in_cgroup(pid: int) -> None:
    """Wait until a process that was just started has joined the group made for it.

    A process starts in its parent's group. When it joins its own, it leaves any group it was moved to before.
    """
    unified = _unified()
    deadline = time.monotonic() + _JOINED_WITHIN_S
    while unified is not None and _unified_group_of(pid).partition("/")[0] != PARENT:
        if time.monotonic() > deadline:
            raise TierwiseError(f"process {pid} is in no control group of tierwise's", "see tierwise doctor")
        time.sleep(0.001)


def _unified_group_of(pid: int) -> str:
    """Path of a process's group below the unified hierarchy's root; empty if it has ended."""
    try:
        lines = os.fsdecode(Path(f"/proc/{pid}/cgroup").read_bytes()).split("\n")
    except OSError:
        return ""
    return next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")


def make_disk_server_cgroups(name: str) -> None:
    """Make groups for a disk server that its starter is about to start, and whose entry it has made.

    If the server made them itself, one that is starting while its disk is undone would leave them behind.
    """
    for hierarchy in {_memory(), _unified()}:
        _make(hierarchy, name)


def enter_disk_server_cgroups(name: str) -> None:
    """Move the calling process, a disk server, out of its starter's groups into those made for it.

    A server whose memory is charged to the group of its users deadlocks: the users wait for memory,
    the memory waits for dirty pages to be written, and the server that would write them waits for memory.
    A server in the process group of its starter would end with the starter, before its users.
    """
    for hierarchy in filter(None, {_memory(), _unified()}):
        with contextlib.suppress(OSError):
            (hierarchy / PARENT / name / "cgroup.procs").write_text("0")


def remove_disk_server_cgroups(name: str) -> None:
    """Remove the groups of a server that has ended."""
    for hierarchy in {_memory(), _unified()}:
        _remove(hierarchy, name)


_SMALLEST_BYTES = 16 << 20
_LIMIT = "memory.limit_in_bytes"
_LIMIT_WITH_SWAP = "memory.memsw.limit_in_bytes"
_UNIFIED_LIMIT = "memory.max"
_UNIFIED_SWAP_LIMIT = "memory.swap.max"


@dataclass
class MemoryLimit:
    """A memory limit for confined processes; as a context manager it removes itself.

    Each limit is one control group. Memory charged before a process was confined stays with its first
    group, in version 1 and 2 alike.
    """

    size_bytes: int
    entry: ledger.LedgerEntry
    group: Path

    @classmethod
    def make(cls, size_bytes: int) -> Self:
        """Make a limit with no processes in it yet."""
        cls.require_size(size_bytes)
        if (reason := memory_limit_obstacle()) is not None:
            raise TierwiseError(f"memory: {reason}", "leave memory out of the study, or mend that")
        name = f"memory-{secrets.token_hex(4)}"
        entry = ledger.add("limit", name)
        try:
            group = _make(_memory(), name)
            if group is None:
                raise TierwiseError("memory: no control group can be made", "see tierwise doctor")
            _write_limits(group, size_bytes)
        except TierwiseError:
            remove(entry)
            raise
        return cls(size_bytes, entry, group)

    @staticmethod
    def require_size(size_bytes: int) -> None:
        """Refuse a size that is too small for a server."""
        if size_bytes < _SMALLEST_BYTES:
            raise TierwiseError(f"memory: {size_bytes} bytes", f"give at least {_SMALLEST_BYTES >> 20}M")

    def confine(self, pid: int) -> None:
        """Confine a process, all its descendants, and the children that they fork later."""
        wait_until_in_cgroup(pid)
        confined: set[int] = set()
        while new := cpu.process_tree(pid) - confined:
            for group in new:
                # A child may end on the way; what it had forked is still found by its parent.
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(group))
            confined |= new

    def kills(self) -> int:
        """Number of processes that the kernel's OOM killer ended; 0 where it is not reported."""
        file = self.group / ("memory.events" if _unified_memory(self.group) else "memory.oom_control")
        fields = file.read_text("ascii").split()
        return int(fields[fields.index("oom_kill") + 1]) if "oom_kill" in fields else 0

    def remove(self) -> None:
        """Remove the limit; the processes in it must have ended."""
        remove(self.entry)

    def __enter__(self) -> Self:
        """Give the limit."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.remove()


def memory_limit_obstacle() -> str | None:
    """Reason why memory cannot be limited here, or ``None`` if it can."""
    if os.geteuid() != 0:
        return "only root can limit a server's memory"
    if memory_cgroup_version() is None:
        return "this machine has no memory control group"
    return None


def remove(entry: ledger.LedgerEntry) -> None:
    """Undo an entry of the ledger; kill processes that are still in the group."""
    hierarchy = _memory()
    for pid in [] if hierarchy is None else cgroup_members(hierarchy / PARENT / entry.name):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _remove(hierarchy, entry.name)
    entry.remove()


def _unified_memory(group: Path) -> bool:
    return (group / _UNIFIED_LIMIT).exists()


def _write_limits(group: Path, size_bytes: int) -> None:
    """Write the memory limit, and forbid additional swap where the kernel counts swap."""
    if _unified_memory(group):
        limits = {_UNIFIED_LIMIT: size_bytes, _UNIFIED_SWAP_LIMIT: 0}
    else:
        limits = {_LIMIT: size_bytes, _LIMIT_WITH_SWAP: size_bytes}
    with os_errors(f"memory: {group}", "see tierwise doctor"):
        for name, limit_bytes in limits.items():
            if (group / name).exists() or name in (_LIMIT, _UNIFIED_LIMIT):
                (group / name).write_text(str(limit_bytes))
