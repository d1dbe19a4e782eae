"""The worker process of an embedded engine, seen from the parent: started, asked over a connection, ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tierwise.host import processes, programs, python_process
from tierwise.host.users import ServerUser
from tierwise.lab.engines.process_engine import EngineProcess
from tierwise.model.errors import TierwiseError

_LONGEST_ANSWER_BYTES = 1 << 30
"""As many as a file of results may have."""
READY = b"\n"
"""The first byte from a worker that has loaded its engine."""


class WorkerLink:
    """One connection to one worker. Requests may overlap: each answer carries the number of its request."""

    def __init__(self, connection: socket.socket, ended: Callable[[], TierwiseError]) -> None:
        """Take over the connection.

        Args:
            ended: gives the error for pending requests once the worker has closed the connection.
        """
        self._connection = connection
        self._ended = ended
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._open = True
        threading.Thread(target=self._receive, name="worker-link", daemon=True).start()

    @property
    def open(self) -> bool:
        """Whether the worker is still at the other end."""
        return self._open

    def call(self, request: str, **arguments: Any) -> Any:
        """Send one request and wait for its answer, without a time limit."""
        number, answer = next(self._numbers), Future[Any]()
        line = json.dumps({"number": number, "request": request, "arguments": arguments}) + "\n"
        with self._lock:
            if not self._open:
                raise self._ended()
            self._waiting[number] = answer
            try:
                self._connection.sendall(line.encode())
            except OSError:
                raise self._ended() from None
        return answer.result()

    def close(self) -> None:
        """Close the connection, on which the worker exits."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _receive(self) -> None:
        # The library in the worker has read what a stranger wrote: what is no answer ends the connection.
        with (
            contextlib.suppress(AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError),
            self._connection.makefile("rb") as lines,
        ):
            while (line := lines.readline(_LONGEST_ANSWER_BYTES)).endswith(b"\n"):
                reply = json.loads(line)
                problem, result = reply.get("problem"), reply.get("result")
                error = TierwiseError(*map(str, problem)) if problem else None
                answer = self._waiting.pop(reply["number"])
                if error is not None:
                    answer.set_exception(error)
                else:
                    answer.set_result(result)
        with self._lock:
            self._open = False
        for answer in self._waiting.values():
            answer.set_exception(self._ended())


_MODULE = "tierwise.lab.engines.embedded.worker"
_EXITS_WITHIN_S = 0.05


class WorkerProcess(EngineProcess):
    """Successive workers, with their log in the home.

    A worker runs as tierwise's own account (:func:`tierwise.host.python_process.unprivileged_python`).
    """

    def __init__(self, name: str, adapter: str, user: ServerUser | None) -> None:
        super().__init__(name, name, user)
        self._adapter = adapter
        self.link: WorkerLink | None = None

    @property
    def pid(self) -> int | None:
        """Pid of the worker while it runs; one that has disconnected is about to exit."""
        return None if self.link is not None and not self.link.open else super().pid

    def start(self, directories: Iterable[Path], timeout_s: float) -> WorkerLink:
        """Start a worker and wait until it is ready."""
        self.crash_stop()  # one that ended by itself is still in the ledger
        self._home.log.unlink(missing_ok=True)
        connection, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = self._launch(theirs.fileno(), directories)
            self._await_ready(connection, timeout_s)
            self.link = WorkerLink(connection, self._ended)
        except BaseException:
            connection.close()
            self.crash_stop()
            raise
        return self.link

    def end(self, timeout_s: float) -> None:
        """Disconnect and wait for the worker to exit; unwritten data is lost."""
        process = self._leave()
        if process is not None:
            process.wait_or_kill(timeout_s)

    def failure(self) -> str | None:
        """The last line that the worker or its library wrote before it failed, if any."""
        lines = self._home.read_log().splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), None)

    def _ended(self) -> TierwiseError:
        if self._was_killed():
            return TierwiseError(
                f"engine {self._name} was killed, as the kernel does where memory is short",
                "give it more memory",
            )
        return TierwiseError(f"engine {self._name} has ended", "start it again, and see its log")

    def _was_killed(self) -> bool:
        """Whether the last worker was ended by SIGKILL from another process than its owner."""
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):
            # The worker closes the connection a moment before it exits.
            return process is not None and process.popen.wait(_EXITS_WITHIN_S) == -signal.SIGKILL
        return False

    def _disconnect(self) -> None:
        if self.link is not None:
            self.link.close()
        self.link = None

    def _launch(self, descriptor: int, directories: Iterable[Path]) -> processes.Process:
        arguments = ["--adapter", self._adapter, "--connection", str(descriptor)]
        command = python_process.unprivileged_python(
            _MODULE,
            f"from {_MODULE} import main; main()",
            [*arguments, "--own", self.home, *directories],
            imports=[_MODULE, self._adapter.partition(":")[0]],
        )
        return programs.start(
            self._name, command, home=self._home, log=self._home.log, descriptors=[descriptor]
        )

    def _await_ready(self, connection: socket.socket, timeout_s: float) -> None:
        connection.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            if connection.recv(len(READY)) == READY:
                connection.settimeout(None)
                return
        words = self.failure() or "no message"
        raise TierwiseError(f"engine {self._name} cannot start: {words}", "mend what the message names")
