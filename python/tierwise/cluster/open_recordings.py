"""The recordings that a worker keeps open between tasks, as many as its memory allows."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import psutil

from tierwise.cluster.fingerprint import require_same
from tierwise.cluster.remote import opened
from tierwise.predict.replayer import Replayer

MOST_RESIDENT_BYTES = 400_000_000
"""Resident memory of the process above which recordings are closed."""

_Key = tuple[str, str, tuple[str, ...]]


class OpenRecordings:
    """Opened recordings; those used longest ago are closed first. Threads may share it."""

    def __init__(self, most_resident_bytes: int = MOST_RESIDENT_BYTES) -> None:
        """Open nothing yet."""
        self._most_resident_bytes = most_resident_bytes
        self._open: OrderedDict[_Key, Replayer] = OrderedDict()
        self._lock = Lock()

    def get(self, uri: str, checksum: str, without: Sequence[str] = ()) -> Replayer:
        """The recording at a path or URI, which is read only if it is not open.

        Raises:
            HostError: a package for this kind of URI is not installed.
            TierwiseError: it cannot be read, or its fingerprint is not ``checksum``.
        """
        key = (uri, checksum, tuple(without))
        with self._lock:
            if key not in self._open:
                require_same(uri, checksum)
                with opened(uri) as folder:
                    self._open[key] = Replayer.open(folder, without=without)
            self._open.move_to_end(key)
            while len(self._open) > 1 and _resident_bytes() > self._most_resident_bytes:
                self._open.popitem(last=False)
                _return_memory()
            return self._open[key]

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _return_memory() -> None:
    """Give freed memory back to the kernel, which glibc does not do by itself (malloc_trim(3))."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
