"""Where the work of each database is done: here or on workers, on how many processors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Generic, Protocol, TypeVar

from tierwise import _core
from tierwise.model.errors import HostError

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS = 4


@dataclass(frozen=True)
class LostTask:
    """The outcome of a task that ended every worker that began it: what happened, and what to do about it."""

    problem: str
    fix: str


class Executor(Protocol):
    """Does a pure function for each task. Tasks and results can be pickled, so it may use other hosts."""

    def run(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | LostTask]]:
        """Index and result of each task as soon as it is known, in any order.

        An error that ``work`` raises ends the run. If the caller stops, no further task is started.
        """


class ThreadExecutor:
    """Threads of this process.

    Every simulation uses all processors by itself. Several recordings at a time keep them busy while others
    are copied or read.
    """

    def __init__(self, count: int | None = None) -> None:
        """Set the number of threads; by default that of the usable processors, at most 4."""
        self._count = count or min(usable_processors(), _MOST_THREADS)

    def run(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | LostTask]]:
        """As :class:`Executor`; no task is lost, and those under way are waited for."""
        pool = ThreadPoolExecutor(self._count, thread_name_prefix="fleet")
        try:
            numbers = {pool.submit(work, task): number for number, task in enumerate(tasks)}
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


_granted: ContextVar[int | None] = ContextVar("_granted", default=None)
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def usable_processors() -> int:
    """Processors for the work at hand: of :func:`granted_processors`, else of this process; at least 1.

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
def granted_processors(count: int) -> Iterator[None]:
    """Let what the calling thread does in this context use ``count`` processors, at least 1."""
    token = _granted.set(max(1, count))
    try:
        yield
    finally:
        _granted.reset(token)


def _groups() -> Iterator[Path]:
    """Directories of the control groups with a CPU quota that hold this process, from the inside outwards."""
    try:
        lines = os.fsdecode(_OWN_GROUPS.read_bytes()).split("\n")
    except OSError:
        return
    for line in filter(None, lines):
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / "cpu" if controllers else _CGROUPS
        group = PurePosixPath(path.lstrip("/"))
        for parent in (group, *group.parents):
            if ".." not in parent.parts:  # a group outside of this namespace of control groups
                yield root / parent


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


ProgressCallback = Callable[[str], None]
"""Called with one line of text whenever a long task starts its next part."""


@dataclass(frozen=True)
class WorkerCall(Generic[T, R]):
    """A function and its argument for a worker, with the version of tierwise where the call was made."""

    work: Callable[[T], R]
    task: T
    version: str = _core.__version__

    def __call__(self) -> R:
        """Do it, unless another version of tierwise is here."""
        if self.version != _core.__version__:
            raise HostError(
                f"a worker has tierwise {_core.__version__}, this machine {self.version}",
                "install the same version on all",
            )
        return self.work(self.task)
