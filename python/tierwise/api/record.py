"""Recording a running database while a block of Python runs."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tierwise.host import interpreter, programs
from tierwise.host.processes import Process
from tierwise.model.errors import TierwiseError
from tierwise.recording import ABOUT_FILE

_LONGEST = "24h"
_ATTACH_S = 120.0
_FINISH_S = 600.0
_MOST_BYTES = 1 << 20


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
    folder = Path(output).absolute()
    arguments: list[str | Path] = ["record", "-o", folder, *who, "--duration", _LONGEST, "--duty", duty]
    with tempfile.TemporaryFile() as log:
        command = interpreter.own("tierwise.__main__", arguments)
        process = programs.start("record", command, variables=programs.own_variables(), log=log)
        try:
            _wait_for_attachment(process, folder, log)
            yield
        finally:
            process.signal(signal.SIGINT)
            process.wait_or_kill(_FINISH_S)
        if not (folder / ABOUT_FILE).exists():
            raise _error(log)


def _wait_for_attachment(process: Process, output: Path, log: IO[bytes]) -> None:
    deadline = time.monotonic() + _ATTACH_S
    while not output.exists() or not any(output.iterdir()):
        if not process.running:
            raise _error(log)
        if time.monotonic() > deadline:
            raise TierwiseError("recording did not begin", f"run tierwise record -o {output} to see why")
        time.sleep(0.05)


def _error(log: IO[bytes]) -> TierwiseError:
    log.seek(max(0, log.seek(0, os.SEEK_END) - _MOST_BYTES))
    said = log.read().decode("utf-8", "replace")
    line = next((line for line in reversed(said.splitlines()) if line.startswith("tierwise: ")), said.strip())
    message, _, fix = line.removeprefix("tierwise: ").rpartition(": ")
    return TierwiseError(message or fix, fix if message else "run tierwise doctor")
