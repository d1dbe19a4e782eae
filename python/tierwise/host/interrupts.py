"""Interrupts that wait until what must be whole is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold SIGINT, SIGTERM and SIGHUP back; the first of them takes effect at the end.

    Only those with a handler in Python are held back. Signals reach the main thread alone: others are free.
    """
    came: list[int] = []
    former = {}

    def hold(number: int, _: FrameType | None) -> None:
        came.append(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for number in _INTERRUPTS:
                handler = signal.getsignal(number)
                if callable(handler):
                    former[number] = handler
                    signal.signal(number, hold)
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
