"""Recording a running database while a block of Python runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.recording import ABOUT_FILE

_LONGEST = "24h"
_ATTACH_S = 120.0
_FINISH_S = 600.0


@contextmanager
def record(
    output: str | Path, *, engine: str | None = None, pid: int | None = None, duty: str = "1/10"
) -> Iterator[None]:
    """Record a running database until the block ends; needs root.

    Args:
        output: directory of the recording; it is created.
        engine: engine of the only such server on this machine.
        pid: alternatively, the first process of a running database.
        duty: share of the time in which events are recorded.

    Raises:
        TierwiseError: with the same messages as ``tierwise record``.
    """
    who = ["--engine", engine] if engine is not None else ["--pid", str(pid)]
    command = [sys.executable, "-m", "tierwise", "record", "-o", str(output), *who]
    command += ["--duration", _LONGEST, "--duty", duty]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for_attachment(process, Path(output))
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=_FINISH_S)
    if not (Path(output) / ABOUT_FILE).exists():
        raise _error(said)


def _wait_for_attachment(process: subprocess.Popen[str], output: Path) -> None:
    deadline = time.monotonic() + _ATTACH_S
    while not output.exists() or not any(output.iterdir()):
        if process.poll() is not None:
            raise _error(process.communicate()[1])
        if time.monotonic() > deadline:
            raise TierwiseError("recording did not begin", f"run tierwise record -o {output} to see why")
        time.sleep(0.05)


def _error(said: str) -> TierwiseError:
    line = next((line for line in reversed(said.splitlines()) if line.startswith("tierwise: ")), said.strip())
    message, _, fix = line.removeprefix("tierwise: ").rpartition(": ")
    return TierwiseError(message or fix, fix if message else "run tierwise doctor")
