"""Who gets the processor first: what measures times, and last what could as well run later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_HIGHEST = -20
_LOWEST = 19


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Give the calling thread, and those it starts meanwhile, the highest ordinary priority, where it may."""
    with _priority(_HIGHEST):
        yield


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Give the calling thread, and those it starts meanwhile, the lowest priority, if that can be undone."""
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
