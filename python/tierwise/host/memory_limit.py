"""Limits the total memory of a server's processes, page cache included.

A working set larger than memory can thus be studied at small scale. A process's reads and writes are charged
to its group, also during the load phase: the page cache left by loading counts against the limit. Servers of
emulated disks have their own groups, because a server charged to the group of its users deadlocks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tierwise.host import cgroups, cpu, ledger
from tierwise.model.errors import TierwiseError

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
    entry: ledger.Entry
    group: Path

    @classmethod
    def make(cls, size_bytes: int) -> Self:
        """Make a limit with no processes in it yet.

        Raises:
            TierwiseError: if the size is too small for a server, or memory cannot be limited here.
        """
        if size_bytes < _SMALLEST_BYTES:
            raise TierwiseError(f"memory: {size_bytes} bytes", f"give at least {_SMALLEST_BYTES >> 20}M")
        if (reason := impossible()) is not None:
            raise TierwiseError(f"memory: {reason}", "leave memory out of the study, or mend that")
        name = f"memory-{secrets.token_hex(4)}"
        entry = ledger.add("limit", name)
        try:
            group = cgroups.make_memory_group(name)
            if group is None:
                raise TierwiseError("memory: no control group can be made", "see tierwise doctor")
            _write_limits(group, size_bytes)
        except TierwiseError:
            remove(entry)
            raise
        return cls(size_bytes, entry, group)

    def confine(self, pid: int) -> None:
        """Confine a process, all its descendants, and the children that they fork later."""
        cgroups.wait_until_joined(pid)
        confined: set[int] = set()
        while new := cpu.tree(pid) - confined:
            for one in new:
                # A child may end on the way; what it had forked is still found by its parent.
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(one))
            confined |= new

    def kills(self) -> int:
        """Number of processes that the kernel's OOM killer ended; 0 where it is not reported."""
        file = self.group / ("memory.events" if _unified(self.group) else "memory.oom_control")
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


def impossible() -> str | None:
    """Reason why memory cannot be limited here, or ``None`` if it can."""
    if os.geteuid() != 0:
        return "only root can limit a server's memory"
    if cgroups.memory_version() is None:
        return "this machine has no memory control group"
    return None


def remove(entry: ledger.Entry) -> None:
    """Undo an entry of the ledger; kill processes that are still in the group."""
    group = cgroups.memory_group(entry.name)
    for pid in cgroups.members(group) if group is not None else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cgroups.remove_memory_group(entry.name)
    entry.remove()


def _unified(group: Path) -> bool:
    return (group / _UNIFIED_LIMIT).exists()


def _write_limits(group: Path, size_bytes: int) -> None:
    """Write the memory limit, and forbid additional swap where the kernel counts swap."""
    if _unified(group):
        limits = {_UNIFIED_LIMIT: size_bytes, _UNIFIED_SWAP_LIMIT: 0}
    else:
        limits = {_LIMIT: size_bytes, _LIMIT_WITH_SWAP: size_bytes}
    try:
        for name, limit_bytes in limits.items():
            if (group / name).exists() or name in (_LIMIT, _UNIFIED_LIMIT):
                (group / name).write_text(str(limit_bytes))
    except OSError as error:
        raise TierwiseError(f"memory: {group}: {error.strerror}", "see tierwise doctor") from error
