"""The privileges of root, put aside for a while."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

_VERSION_3 = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)
_HEADER = (ctypes.c_uint32 * 2)(_VERSION_3, 0)


def _call(function: str, sets: ctypes.Array[ctypes.c_uint32]) -> None:
    if getattr(_LIBC, function)(_HEADER, sets):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def without_capabilities() -> Iterator[None]:
    """This thread, and those that it begins meanwhile, may do what any user may with files of their own.

    See capset(2): words 0 and 3 are the effective set, which the permitted one allows to take back.
    """
    before = (ctypes.c_uint32 * 6)()
    _call("capget", before)
    _call("capset", (ctypes.c_uint32 * 6)(0, *before[1:3], 0, *before[4:6]))
    try:
        yield
    finally:
        _call("capset", before)
