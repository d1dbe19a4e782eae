"""The processor first: what measures times should not wait for it behind other programs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_HIGHEST = -20


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Give the calling thread, and those it starts meanwhile, the highest ordinary priority, where it may."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _HIGHEST)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
