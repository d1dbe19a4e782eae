"""Where the work of each database is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tierwise.model import processors

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS = 4


@dataclass(frozen=True)
class Lost:
    """The outcome of a task that ended every worker that began it.

    Attributes:
        problem: what happened.
        fix: what to do about it.
    """

    problem: str
    fix: str


class Executor(Protocol):
    """Does a pure function for each task. Tasks and results can be pickled, so it may use other hosts."""

    def run(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | Lost]]:
        """Index and result of each task as soon as it is known, in any order.

        An error that ``work`` raises ends the run. If the caller stops, no further task is started.
        """


class Threads:
    """Threads of this process.

    Every simulation uses all processors by itself. Several recordings at a time keep them busy while others
    are copied or read.
    """

    def __init__(self, count: int | None = None) -> None:
        """Set the number of threads; by default that of the usable processors, at most 4."""
        self._count = count or min(processors.usable(), _MOST_THREADS)

    def run(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | Lost]]:
        """As :class:`Executor`; no task is lost, and those under way are waited for."""
        pool = ThreadPoolExecutor(self._count, thread_name_prefix="fleet")
        try:
            numbers = {pool.submit(work, task): number for number, task in enumerate(tasks)}
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)
