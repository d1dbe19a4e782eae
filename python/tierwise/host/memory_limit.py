"""A limit for the memory of a server's processes together, page cache included.

So a working set larger than memory behaves so at small scale. What a process reads or writes is charged to
its group, also while tables are loaded: the page cache that loading leaves is within the limit as well. The
servers of emulated disks are in groups of their own, as a server charged to the group of its users deadlocks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tierwise.errors import TierwiseError
from tierwise.host import cgroups, cpu, ledger

_SMALLEST_BYTES = 16 << 20
_LIMIT = "memory.limit_in_bytes"
_LIMIT_WITH_SWAP = "memory.memsw.limit_in_bytes"
_UNIFIED_LIMIT = "memory.max"
_UNIFIED_SWAP_LIMIT = "memory.swap.max"


@dataclass
class MemoryLimit:
    """A limit that is in force for whatever was confined; as a context manager it removes itself.

    With version 1 of control groups it is a group of its own. With version 2, where a process is in one group
    only, it is a property of the group that each process of tierwise's has anyway.
    """

    size_bytes: int
    entry: ledger.Entry
    group: Path | None

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
        group = cgroups.make_memory_group(name)
        try:
            if group is not None:
                _write_limits(group, (_LIMIT, _LIMIT_WITH_SWAP), size_bytes)
        except TierwiseError:
            remove(entry)
            raise
        return cls(size_bytes, entry, group)

    def confine(self, pid: int) -> None:
        """Bring a process and all its descendants in; what they fork from then on is in as well."""
        if self.group is None:
            _write_limits(cgroups.joined_group_of(pid), (_UNIFIED_LIMIT,), self.size_bytes)
            return
        confined: set[int] = set()
        while new := cpu.tree(pid) - confined:
            for one in new:
                # A child may end on the way; what it had forked is still found by its parent.
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(one))
            confined |= new

    def kills(self) -> int:
        """How many processes the kernel has ended for want of memory; 0 where it cannot be told.

        With version 2 the count goes with the group of the process that was ended.
        """
        if self.group is None:
            return 0
        fields = (self.group / "memory.oom_control").read_text("ascii").split()
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
    if not cgroups.limits_memory():
        return "this machine has no memory control group"
    return None


def remove(entry: ledger.Entry) -> None:
    """Undo an entry of the ledger."""
    cgroups.remove_memory_group(entry.name)
    entry.remove()


def _write_limits(group: Path, names: tuple[str, ...], size_bytes: int) -> None:
    """Write each limit, and allow no swap beyond, where the kernel counts swap."""
    try:
        for name in names:
            if name != _LIMIT_WITH_SWAP or (group / name).exists():
                (group / name).write_text(str(size_bytes))
        if (group / _UNIFIED_SWAP_LIMIT).exists():
            (group / _UNIFIED_SWAP_LIMIT).write_text("0")
    except OSError as error:
        raise TierwiseError(f"memory: {group}: {error.strerror}", "see tierwise doctor") from error
