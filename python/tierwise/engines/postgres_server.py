"""One PostgreSQL server process: started, asked, stopped, and its complaints told in one line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tierwise.engines.postgres_binaries import Binaries
from tierwise.engines.postgres_errors import explain, fix_for, grave_lines
from tierwise.errors import TierwiseError
from tierwise.host import ledger, processes
from tierwise.host.cpu import tree_cpu_s
from tierwise.host.users import ServerUser, give

SUPERUSER = "tierwise"
_CRASH_TIMEOUT_S = 10
_MEMORY = Path("/dev/shm")


class PostgresServer:
    """The programs, the process, and a home for its socket and its log off the placed devices."""

    def __init__(
        self, name: str, binaries: Binaries, user: ServerUser | None, *, socket: tuple[Path | None, int]
    ) -> None:
        """Make the home, and in it a copy of the programs if ``user`` cannot reach them.

        Args:
            name: of the engine, for messages.
            socket: its directory (the home when ``None``) and the port number in its file name.
        """
        self._name = name
        self._user = user
        self._home = ledger.directory("postgres-home")
        self._shared: ledger.Directory | None = None
        give(self._home.path, user)
        self._binaries = binaries.reachable_by(user, self._home.path / "server")
        self._log = self._home.path / "server.log"
        self._log_from = 0
        self.socket_dir, self.port = socket[0] or self._home.path, socket[1]
        self._process: processes.Process | None = None
        self._control: psycopg.Connection[Any] | None = None

    @property
    def pid(self) -> int | None:
        """Pid of the postmaster, while it runs."""
        return self._process.pid if self._process is not None and self._process.running else None

    @property
    def dsn(self) -> str:
        """Keywords and values, as libpq and tokio-postgres read them."""
        return f"host='{self.socket_dir}' port={self.port} user={SUPERUSER} dbname=postgres"

    @property
    def sampler_dsn(self) -> str:
        """For sessions that watch: those of another database are not among the commits of the load."""
        return self.dsn.replace("dbname=postgres", "dbname=template1")

    def run(self, program: str, arguments: Sequence[str | Path], timeout_s: float) -> None:
        """Run a program of the installation to its end.

        Raises:
            TierwiseError: with the last line it wrote, if it failed.
        """
        process = self.launch(program, arguments)
        try:
            failed = process.wait(timeout_s) != 0
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            failed = True
        if failed:
            raise self.error(f"{program} failed")

    def adopt(self, data: Path) -> None:
        """Move the shared memory of a new data directory to a directory of its own in memory.

        A killed server leaves its shared memory behind. In /dev/shm itself nobody could tell whose that is;
        in ``data`` it would be input and output of the device under test.
        """
        self._shared = ledger.directory("postgres-shared", parent=_MEMORY, mode=0o700)
        give(self._shared.path, self._user)
        (data / "pg_dynshmem").rmdir()
        (data / "pg_dynshmem").symlink_to(self._shared.path)

    def start(self, data: Path, settings: Mapping[str, str], timeout_s: float) -> None:
        """Start postgres on a data directory and wait until it answers.

        Raises:
            TierwiseError: naming the setting, or with the last grave line of its log.
        """
        options = [f"-c{name}={value}" for name, value in settings.items()]
        self._process = self.launch("postgres", ["-D", data, *options])
        try:
            self._control = self._connect(data, timeout_s)
        except BaseException:
            self.crash_stop()
            raise

    def stop(self, timeout_s: float) -> None:
        """Fast shutdown: sessions are ended, a checkpoint is written."""
        process = self._leave()
        if process is None:
            return
        process.signal(signal.SIGINT)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TierwiseError(
                f"engine {self._name} did not stop within {timeout_s:g} s and was killed",
                "see what its device does, or allow more time",
            ) from None

    def crash_stop(self) -> None:
        """Immediate shutdown, which writes nothing; SIGKILL if that takes long."""
        process = self._leave()
        if process is None:
            return
        process.signal(signal.SIGQUIT)
        try:
            process.wait(_CRASH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()

    def remove(self) -> None:
        """End the process if it runs, delete its shared memory and the home."""
        self.crash_stop()
        if self._shared is not None:
            self._shared.remove()
        self._home.remove()

    def query(self, sql: str) -> list[Any]:
        """Run one statement over the control connection and give its rows."""
        cursor = self._execute(sql)
        return cursor.fetchall() if cursor.description else []

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """Run one query over the control connection and give its rows by column."""
        cursor = self._execute(sql)
        columns = [column.name for column in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def _execute(self, sql: str) -> psycopg.Cursor[Any]:
        if self._control is None:
            raise TierwiseError(f"engine {self._name} does not run", "start it first")
        try:
            return self._control.execute(sql.encode())
        except psycopg.Error as error:
            message = (self._control.broken and self.failure()) or str(error).splitlines()[0]
            raise TierwiseError(f"engine {self._name}: {message}", fix_for(message)) from error

    def pids(self) -> list[int]:
        """Pids of the postmaster and its children; none while it is down."""
        if self.pid is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self.pid, *(child.pid for child in psutil.Process(self.pid).children(recursive=True))]
        return []

    def cpu_s(self) -> float | None:
        """CPU seconds of all its processes since its start, ended ones included."""
        return None if self._process is None else tree_cpu_s(self._process.pid)

    def failure(self) -> str | None:
        """The last grave line of the log since the last start, if any."""
        return next(reversed(grave_lines(self._recent_log())), None)

    def _leave(self) -> processes.Process | None:
        """Disconnect and let go of the process, which the caller ends."""
        if self._control is not None:
            self._control.close()
        process, self._process, self._control = self._process, None, None
        return process

    def launch(self, program: str, arguments: Sequence[str | Path]) -> processes.Process:
        """Start a program of the installation as the server's user, its messages in the server's log."""
        self._log_from = self._log.stat().st_size if self._log.exists() else 0
        return processes.start(
            self._name,
            [self._binaries.bin / program, *arguments],
            user=None if self._user is None else self._user.name,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            cwd=self._home.path,
            log=self._log,
        )

    def _connect(self, data: Path, timeout_s: float) -> psycopg.Connection[Any]:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(psycopg.OperationalError):
                control = psycopg.connect(self.dsn, autocommit=True, application_name="tierwise")
                if self._answers_on(control, data):
                    return control
                control.close()
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")

    @staticmethod
    def _answers_on(control: psycopg.Connection[Any], data: Path) -> bool:
        """Whether our server answers, not another that has the socket while ours fails to start."""
        shown = control.execute("SHOW data_directory").fetchone()
        return shown is not None and Path(shown[0]).resolve() == data.resolve()

    def error(self, what: str) -> TierwiseError:
        """The error to raise, with the last grave line of the log since the last start."""
        return explain(f"engine {self._name} {what}", self._recent_log(), self._binaries.setting_names)

    def _recent_log(self) -> str:
        if not self._log.exists():
            return ""
        return self._log.read_bytes()[self._log_from :].decode("utf-8", "replace")
