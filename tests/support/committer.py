"""A process that commits as a log does, to be recorded."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SQLITE = "sqlite"
# Writes a page and makes it durable, again and again, as a log does.
_COMMITS = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
end = time.monotonic() + float(sys.argv[2])
pause_s = float((sys.argv[3:] or ["0.001"])[0])
number = 0
while time.monotonic() < end:
    os.pwrite(file, b"x" * 4096, number % 100 * 4096)
    os.fdatasync(file)
    number += 1
    time.sleep(pause_s)
"""


@contextmanager
def committing(file: Path, seconds: float = 60, pause_s: float = 0.001) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", _COMMITS, str(file), str(seconds), str(pause_s)])
    try:
        while not file.exists():
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()
