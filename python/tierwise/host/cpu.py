"""CPU time of a process and all that it has started, and the priority of a thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_TRIES = 10


@dataclass(frozen=True)
class _Usage:
    parent: int
    own_ticks: int
    reaped_ticks: int


def process_cpu_s(pid: int) -> float | None:
    """CPU seconds of one process without its children, to 10 ms; ``None`` if it is gone."""
    usage = _read(pid)
    return None if usage is None else usage.own_ticks * _TICK_S


def thread_cpu_s(pid: int, tid: int) -> float | None:
    """CPU seconds of one thread of a process, to 10 ms; ``None`` if it is gone."""
    usage = _usage(Path(f"/proc/{pid}/task/{tid}/stat"))
    return None if usage is None else usage.own_ticks * _TICK_S


def tree_cpu_s(root_pid: int) -> float | None:
    """CPU seconds of a process, its live descendants, and their reaped children; ``None`` if gone.

    When a child ends, the kernel moves its time to its parent's account. A reading during that move would
    count the child twice or not at all, so it is repeated.
    """
    for _ in range(_TRIES):
        table = _table()
        if root_pid not in table:
            return None
        tree = _descendants(root_pid, table)
        again = {pid: _read(pid) for pid in tree}
        if all(now and now.reaped_ticks == table[pid].reaped_ticks for pid, now in again.items()):
            break
    return sum(table[pid].own_ticks + table[pid].reaped_ticks for pid in tree) * _TICK_S


def parent_of(pid: int) -> int | None:
    """Pid of the process that started one; ``None`` if it is gone."""
    usage = _read(pid)
    return None if usage is None else usage.parent


def tree(root_pid: int) -> set[int]:
    """Pids of a process and its live descendants; none if it is gone."""
    table = _table()
    return _descendants(root_pid, table) if root_pid in table else set()


def _descendants(root_pid: int, table: dict[int, _Usage]) -> set[int]:
    tree = {root_pid}
    while more := {pid for pid, usage in table.items() if usage.parent in tree} - tree:
        tree |= more
    return tree


def _table() -> dict[int, _Usage]:
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    usages = {pid: _read(pid) for pid in pids}
    return {pid: usage for pid, usage in usages.items() if usage is not None}


def _read(pid: int) -> _Usage | None:
    return _usage(Path(f"/proc/{pid}/stat"))


def _usage(stat: Path) -> _Usage | None:
    """Fields ppid, utime, stime, cutime and cstime of proc_pid_stat(5)."""
    try:
        text = stat.read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    own, reaped = fields[11:13], fields[13:15]
    return _Usage(int(fields[1]), sum(map(int, own)), sum(map(int, reaped)))


_HIGHEST = -20
_LOWEST = 19


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Give the calling thread, and threads it starts meanwhile, the highest nice priority, if permitted."""
    with _priority(_HIGHEST):
        yield


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Give the calling thread, and threads it starts meanwhile, the lowest priority, if reversible."""
    if os.geteuid() == 0:
        with _priority(_LOWEST):
            yield
    else:
        yield


@contextlib.contextmanager
def _priority(value: int) -> Iterator[None]:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, value)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
