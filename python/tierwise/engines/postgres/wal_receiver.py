"""A second member of PostgreSQL's log: a commit waits until both copies are on the device."""

from __future__ import annotations

import time
from pathlib import Path

from tierwise.engines.postgres.server import PostgresServer
from tierwise.host.processes import Process

MEMBER = "tierwise_member"
"""Name of the receiver, and of the slot that keeps segments until the receiver has them."""

MEMBER_SETTINGS = {"synchronous_standby_names": MEMBER}
_STATE = f"SELECT state FROM pg_catalog.pg_stat_replication WHERE application_name = '{MEMBER}'"


class SynchronousWalReceiver:
    """Runs pg_receivewal, which writes the flushed log, flushes its copy and reports that."""

    def __init__(self, server: PostgresServer, directory: Path) -> None:
        """Write to ``directory``; the server must run with :data:`MEMBER_SETTINGS`."""
        self._server = server
        self._directory = directory
        self._process: Process | None = None

    def start(self, timeout_s: float) -> None:
        """Start receiving, and wait until commits can use the receiver.

        Raises:
            TierwiseError: with the program's last line, if it ended.
        """
        program = self._server.bin / "pg_receivewal"
        arguments: list[str | Path] = ["-D", self._directory, "--no-password", "--slot", MEMBER, "--no-loop"]
        dsn = f"{self._server.dsn} application_name={MEMBER}"
        create = ["--create-slot", "--if-not-exists", "--slot", MEMBER, "-d", dsn]
        secrets = self._server.secrets
        self._server.run(program, create, timeout_s, secrets)
        self._process = self._server.launch(program, [*arguments, "--synchronous", "-d", dsn], secrets)
        deadline_s = time.monotonic() + timeout_s
        while self._server.query(_STATE) != [("streaming",)]:
            if not self._process.running or time.monotonic() > deadline_s:
                self.end()
                raise self._server.error("has no second member of its log")
            time.sleep(0.01)

    @property
    def pids(self) -> list[int]:
        """Pid of the receiver while it runs."""
        return [self._process.pid] if self._process is not None and self._process.running else []

    @property
    def lost(self) -> bool:
        """Whether the receiver has ended unexpectedly, so that commits block."""
        return self._process is not None and not self._process.running

    def end(self, timeout_s: float = 0) -> None:
        """Wait for it to end, as it does after a clean stop of the server, or kill it."""
        process, self._process = self._process, None
        if process is not None:
            process.wait_or_kill(timeout_s)
