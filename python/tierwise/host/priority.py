"""Thread priority: high for measurement, low for background work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

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
