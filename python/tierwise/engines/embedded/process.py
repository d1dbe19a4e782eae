"""The worker process of an embedded engine: started, reached, ended."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tierwise.engines.embedded.link import WorkerLink
from tierwise.errors import TierwiseError
from tierwise.host import ledger, processes

_POLL_S = 0.05


class WorkerProcess:
    """A home off the placed devices, and in it the socket and the log of one worker after another."""

    def __init__(self, name: str, adapter: str) -> None:
        """Make the home.

        Args:
            name: of the engine, for messages.
            adapter: module and class of its adapter, as ``module:Class``.
        """
        self._name = name
        self._adapter = adapter
        self._made = ledger.directory(f"{name}-home")
        self._log = self.home / "worker.log"
        self._process: processes.Process | None = None
        self.link: WorkerLink | None = None

    @property
    def home(self) -> Path:
        """The directory."""
        return self._made.path

    @property
    def pid(self) -> int | None:
        """Pid of the worker while it runs; one that has hung up is about to exit."""
        if self._process is None or not self._process.running or (self.link and not self.link.open):
            return None
        return self._process.pid

    def start(self, timeout_s: float) -> WorkerLink:
        """Start a worker and wait until it has connected.

        Raises:
            TierwiseError: with the last line of its log, if it does not.
        """
        self.kill()  # one that ended by itself is still in the ledger
        path = self.home / "socket"
        path.unlink(missing_ok=True)
        self._log.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(_POLL_S)
            argv = [sys.executable, "-m", "tierwise.engines.embedded.worker"]
            argv += ["--adapter", self._adapter, "--socket", str(path)]
            self._process = processes.start(self._name, argv, cwd=self.home, log=self._log)
            try:
                self.link = WorkerLink(self._accept(listener, timeout_s), self._ended)
            except BaseException:
                self.kill()
                raise
        return self.link

    def end(self, timeout_s: float) -> None:
        """Hang up and wait for the worker to exit; what it did not write is lost."""
        process = self._leave()
        if process is not None:
            process.wait_or_kill(timeout_s)

    def kill(self) -> None:
        """End the worker with SIGKILL. No error if there is none."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
        self._leave()

    def remove(self) -> None:
        """End the worker if it runs and delete the home."""
        self.kill()
        self._made.remove()

    def last_words(self) -> str | None:
        """The last line that the worker or its library wrote before it failed, if any."""
        lines = self._log.read_text("utf-8", "replace").splitlines() if self._log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), None)

    def _ended(self) -> TierwiseError:
        if self._was_killed():
            return TierwiseError(
                f"engine {self._name} was killed, as the kernel does where memory is short",
                "give it more memory",
            )
        return TierwiseError(f"engine {self._name} has ended", "start it again, and see its log")

    def _was_killed(self) -> bool:
        """Whether the last worker was ended by SIGKILL, and not by its owner."""
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):
            # It hangs up a moment before it is gone.
            return process is not None and process.popen.wait(_POLL_S) == -signal.SIGKILL
        return False

    def _leave(self) -> processes.Process | None:
        if self.link is not None:
            self.link.close()
        process, self._process, self.link = self._process, None, None
        return process

    def _accept(self, listener: socket.socket, timeout_s: float) -> socket.socket:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            try:
                return listener.accept()[0]
            except TimeoutError:
                if self.pid is None:
                    break
        words = self.last_words() or "no message"
        raise TierwiseError(f"engine {self._name} cannot start: {words}", "mend what the message names")
