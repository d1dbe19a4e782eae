"""Work in processes of its own, without the time to start Python and import everything again.

A process that runs threads cannot fork one that works: whatever lock a thread holds stays locked. So a server
without threads imports everything, and forks a process for each piece of work.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle

from support.paths import ROOT
from tierwise import cli
from tierwise.cli.commands import all_commands
from tierwise.model.errors import TierwiseError

MOST_BYTES = 500 << 20
"""Memory that bad input may take."""
MOST_TAKEN_BYTES = 2 << 30
"""Memory at which a process is ended: the machine has other work."""


_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""NumPy's and Arrow's libraries start threads when they are imported unless they are told so."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        status: its exit status, negative for a signal; ``None`` if it took too long and was killed.
        printed: on standard output and standard error.
        refused: message of the error for the user that it raised.
        defect: any other exception, with its place.
        taken_bytes: memory that it took.
        cpu_s: processor time that it took.
    """

    status: int | None
    printed: str = ""
    refused: str = ""
    defect: str = ""
    taken_bytes: int = 0
    cpu_s: float = 0.0

    @property
    def refusal(self) -> str:
        """What it printed, if it ended as it must on bad input: soon, in little memory, without a defect."""
        assert self.status is not None, "it hangs"
        assert self.status in (1, 2, 3) and not self.defect, self
        assert self.taken_bytes < MOST_BYTES, f"{self.taken_bytes >> 20} MiB"
        return self.printed


def command(*arguments: str | Path, within_s: float = 30.0) -> Ended:
    """Run a command as the command line runs it."""
    return forked(lambda: cli.main([str(argument) for argument in arguments]), within_s=within_s)


def forked(work: Callable[[], object], *, within_s: float = 30.0) -> Ended:
    """Call a function in another process, with the working directory and the environment of this one."""
    module = sys.modules[work.__module__] if work.__module__.startswith("test_") else None
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        asked = cloudpickle.dumps((work, Path.cwd(), dict(os.environ)))
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)
    _server().send((asked, within_s))
    ended: Ended = _server().recv()
    return ended


@cache
def _server() -> Connection:
    """A connection to the server of this process, which ends when this process does."""
    here, there = Pipe()
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    subprocess.Popen(
        [sys.executable, "-c", f"from support import forked; forked.serve({there.fileno()})"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[there.fileno()],
        env=os.environ | _WITHOUT_THREADS | {"PYTHONPATH": path},
    )
    there.close()
    return here


def serve(descriptor: int) -> None:
    """Fork a process for each message, until there are no more; what it is to do is unpickled there."""
    _import_all()
    threads = list(Path("/proc/self/task").iterdir())
    assert len(threads) == 1, "a library started threads when it was imported"
    with Connection(descriptor) as caller, contextlib.suppress(EOFError):
        while True:
            caller.send(_fork(*caller.recv()))


def _fork(asked: bytes, within_s: float) -> Ended:
    """Call what was asked for in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(asked, writer)
    os.close(writer)
    try:
        fork = _said_by(reader, child, time.monotonic() + within_s)
    finally:
        os.close(reader)
        _, status, used = os.wait4(child, 0)
    cpu_s = used.ru_utime + used.ru_stime
    if fork is None:
        return Ended(None, cpu_s=cpu_s)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, **json.loads(fork or b"{}"), cpu_s=cpu_s)


@cache
def _import_all() -> None:
    """Import what commands need, so that it is imported once and not in each process."""
    for _ in all_commands():
        pass
    for name in ("altair", "duckdb", "fsspec", "numpy", "pyarrow.parquet", "scipy.optimize", "scipy.sparse"):
        with contextlib.suppress(ImportError):
            import_module(name)


def _work(asked: bytes, writer: int) -> None:
    """Call the function and say how it went; this process has no other purpose."""
    status, printed, before_bytes = 0, io.StringIO(), _resident_bytes("self")
    content: dict[str, object] = {}
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                work, directory, environment = cloudpickle.loads(asked)
                os.chdir(directory)
                os.environ.clear()
                os.environ.update(environment)
                work()
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 0
            except TierwiseError as error:
                content["refused"] = str(error)
            except BaseException:
                frames = traceback.extract_tb(sys.exc_info()[2])[-4:]
                where = " < ".join(
                    f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)
                )
                content["defect"] = f"{traceback.format_exc().strip().splitlines()[-1]} | {where}"
        content["printed"] = printed.getvalue()
        content["taken_bytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before_bytes
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(content).encode())
    finally:
        os._exit(status)


def _said_by(reader: int, child: int, until_s: float) -> bytes | None:
    """What a process says until it ends; ``None`` if it was killed because it takes too long."""
    output = b""
    while time.monotonic() < until_s:
        if select.select([reader], [], [], 0.1)[0]:
            if not (more := os.read(reader, 1 << 16)):
                return output
            output += more
        if (taken_bytes := _resident_bytes(child)) > MOST_TAKEN_BYTES:
            os.kill(child, signal.SIGKILL)
            return json.dumps({"taken_bytes": taken_bytes}).encode()
    os.kill(child, signal.SIGKILL)
    return None


def _resident_bytes(pid: int | str) -> int:
    """Memory of a process; 0 once it has ended."""
    fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    return int(fields[1]) * resource.getpagesize()
