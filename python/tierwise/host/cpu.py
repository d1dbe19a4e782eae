"""What the kernel tells of processes (proc_pid_stat(5)): their CPU time; and the priority of a thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_TRIES = 10


def proc_stat_fields(process: Path) -> list[str] | None:
    """Fields of a process or thread from its state on; ``None`` if it is gone.

    The name before them may be any bytes: the kernel cuts it amid a character.
    """
    try:
        text = (process / "stat").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def proc_status_text(process: Path) -> str:
    """The status of a process or thread, a line for each field; all others begin after the line of its name.

    In a name, the kernel escapes the line feed alone; Python would take a carriage return for one.

    Raises:
        OSError: if it is gone.
    """
    return (process / "status").read_bytes().decode("utf-8", "replace")


def all_stat_fields() -> Iterator[tuple[int, list[str]]]:
    """Pid and those fields of every process that this one may read."""
    for process in Path("/proc").glob("[0-9]*"):  # a longer pattern raises where one ends meanwhile
        with contextlib.suppress(PermissionError):
            if (fields := proc_stat_fields(process)) is not None:
                yield int(process.name), fields


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
    usage = _read(pid, f"task/{tid}")
    return None if usage is None else usage.own_ticks * _TICK_S


def process_tree_cpu_s(root_pid: int) -> float | None:
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


def parent_pid(pid: int) -> int | None:
    """Pid of the process that started one; ``None`` if it is gone."""
    usage = _read(pid)
    return None if usage is None else usage.parent


def process_tree(root_pid: int) -> set[int]:
    """Pids of a process and its live descendants; none if it is gone."""
    table = _table()
    return _descendants(root_pid, table) if root_pid in table else set()


def _descendants(root_pid: int, table: dict[int, _Usage]) -> set[int]:
    tree = {root_pid}
    while more := {pid for pid, usage in table.items() if usage.parent in tree} - tree:
        tree |= more
    return tree


def _table() -> dict[int, _Usage]:
    return {pid: _usage(fields) for pid, fields in all_stat_fields()}


def _read(pid: int, thread: str = "") -> _Usage | None:
    fields = proc_stat_fields(Path(f"/proc/{pid}") / thread)
    return None if fields is None else _usage(fields)


def _usage(fields: list[str]) -> _Usage:
    """Fields ppid, utime, stime, cutime and cstime."""
    own, reaped = fields[11:13], fields[13:15]
    return _Usage(int(fields[1]), sum(map(int, own)), sum(map(int, reaped)))


_HIGHEST = -20
_LOWEST = 19


@contextlib.contextmanager
def raised_priority() -> Iterator[None]:
    """Give the calling thread, and threads it starts meanwhile, the highest nice priority, if permitted."""
    with _priority(_HIGHEST):
        yield


@contextlib.contextmanager
def lowered_priority() -> Iterator[None]:
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
