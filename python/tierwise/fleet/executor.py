"""Where the work of each database is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS = 4


class Executor(Protocol):
    """Does a pure function for each task. Tasks and results can be pickled, so it may use other hosts."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results in the order of the tasks, each as soon as it and those before it are known."""


class Threads:
    """Threads of this process.

    Every simulation uses all cores by itself. Several recordings at a time keep them busy while others are
    copied or read.
    """

    def __init__(self, count: int | None = None) -> None:
        """Set the number of threads; by default that of the cores of this process, at most 4."""
        self._count = count or min(len(os.sched_getaffinity(0)), _MOST_THREADS)

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """As :class:`Executor`; if the caller stops, tasks under way end and no further one starts."""
        pool = ThreadPoolExecutor(self._count, thread_name_prefix="fleet")
        try:
            yield from pool.map(work, tasks)
        finally:
            pool.shutdown(cancel_futures=True)
