"""``tierwise`` in the process of the test: the main function of the command line."""

from __future__ import annotations

import contextlib
import io
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tierwise import cli


@dataclass(frozen=True)
class Finished:
    """A command that has ended, with the names that ``subprocess`` has for it."""

    returncode: int
    stdout: str
    stderr: str


def tierwise(*arguments: str | Path, **environment: str) -> Finished:
    """Run a command; ``environment`` holds variables for it alone."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            cli.main([str(argument) for argument in arguments])
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return Finished(status, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
