"""A limit for the memory of a server's processes together, page cache included.

So a working set larger than memory behaves so at small scale. What a process reads or writes is charged to
its group, also while tables are loaded: the page cache that loading leaves is within the limit as well. The
servers of emulated disks are in groups of their own, as a server charged to the group of its users deadlocks.
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
    """A limit that is in force for whatever was confined; as a context manager it removes itself.

    It is a control group of its own. What a process was charged before it was confined stays with its first
    group, with version 1 and 2 alike.
    """

    size_bytes: int
    entry: ledger.Entry
    group: Path

    @classmethod
    def make(cls, size_bytes: int) -> Self:
        """Prepare a limit; nothing is in it yet.

        Raises:
            TierwiseError: if it is too small for a server, or this machine or user can limit no memory.
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
        """Bring a process and all its descendants in; what they fork from then on is in as well."""
        cgroups.wait_until_joined(pid)
        confined: set[int] = set()
        while new := cpu.tree(pid) - confined:
            for one in new:
                # A child may end on the way; what it had forked is still found by its parent.
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(one))
            confined |= new

    def kills(self) -> int:
        """How many processes the kernel has ended for want of memory; 0 where it cannot be told."""
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
    """Why memory cannot be limited here, or ``None`` if it can."""
    if os.geteuid() != 0:
        return "only root can limit a server's memory"
    if cgroups.memory_version() is None:
        return "this machine has no memory control group"
    return None


def remove(entry: ledger.Entry) -> None:
    """Undo an entry of the ledger; what is still in the group is ended."""
    group = cgroups.memory_group(entry.name)
    for pid in cgroups.members(group) if group is not None else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cgroups.remove_memory_group(entry.name)
    entry.remove()


def _unified(group: Path) -> bool:
    return (group / _UNIFIED_LIMIT).exists()


def _write_limits(group: Path, size_bytes: int) -> None:
    """Write the limit, and allow no swap beyond it, where the kernel counts swap."""
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
