"""Engines that are libraries: each runs in its own process, like a server.

The database and its clients live in a worker (:mod:`tierwise.lab.engines.embedded.worker`), so that memory
limits, CPU time, a kill and a cold restart mean the same as for a server. This is the parent's side.
"""

from __future__ import annotations

import importlib.metadata
import json
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from tierwise.host import ledger, page_cache
from tierwise.host.cpu import process_cpu_s
from tierwise.lab.engines.base import ConnectedClients, ProcessEngine
from tierwise.lab.engines.commit_load import CommitLedger, FoundCommits
from tierwise.lab.engines.embedded.worker_process import WorkerLink, WorkerProcess
from tierwise.lab.engines.thread_waits import ThreadWaitProbe
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.conditions import ColdStart
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters
from tierwise.results.wait_sampling import WaitSampler


class EmbeddedClients:
    """Implements :class:`~tierwise.lab.engines.base.ConnectedClients`.

    It must reconnect after the worker restarted.
    """

    def __init__(
        self, present_link: Callable[[], WorkerLink], program_json: str, clients: int, seed: int
    ) -> None:
        self._present_link = present_link
        self._connection: dict[str, Any] = {"program": program_json, "clients": clients, "seed": seed}
        self._closed = False
        self._connect()

    @property
    def sessions(self) -> int:
        """Number of open sessions."""
        return 0 if self._closed or not self._link.open else int(self._connection["clients"])

    def run(self, transactions: int | None = None, seconds: float | None = None, **options: Any) -> str:
        """Run, and give the report; its ``client_cpu_s`` is zero because the engine counts that time."""
        answer = self._link.call("run", number=self._number, limits=[transactions, seconds], options=options)
        return json.dumps({**json.loads(answer), "client_cpu_s": 0.0})

    def reconnect(self) -> None:
        """Close every session and open new ones in the current worker."""
        if self._link.open:
            self._link.call("reconnect", number=self._number)
        else:
            self._connect()

    def close(self) -> None:
        """End the sessions. No error if the worker, and the sessions with it, is gone."""
        if self._link.open and not self._closed:
            self._link.call("disconnect", number=self._number)
        self._closed = True

    def _connect(self) -> None:
        self._link = self._present_link()
        self._number = self._link.call("connect", **self._connection)


_END_TIMEOUT_S = 10


class EmbeddedEngine(ProcessEngine[WorkerProcess]):
    """A library as an engine; each subclass names its adapter and the roles of its files.

    The worker exits when its owner does, even if the owner is killed.
    """

    adapter: ClassVar[str]
    """Module and class of the adapter, as ``module:Class``."""
    package: ClassVar[str]
    """Distribution that contains the library; its version is the engine's."""
    helped: ClassVar[bool] = False
    """Whether the library runs a statement on its own threads besides the client's."""

    least_memory_bytes: ClassVar[int] = 16 << 20
    """The library's need besides the interpreter's and its own code, for tables of a few thousand rows."""

    def __init__(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Prepare; nothing is made or started yet. The arguments are the base class's."""
        super().__init__(name, name, settings)
        self._connected = weakref.WeakSet[EmbeddedClients]()

    def check_settings(self) -> None:
        """Open an empty database with them."""
        if not self._given:
            return
        with ledger.passage_directory("engine-settings", self._user) as directory:
            try:
                self.init(dict.fromkeys(self.roles, directory))
            finally:
                self.close()

    def _make_process(self) -> WorkerProcess:
        given_bytes = self.limits.memory_bytes
        if given_bytes is not None and given_bytes < self.least_memory_bytes:
            raise TierwiseError(
                f"engine {self.name} cannot work in {given_bytes >> 20}M of memory",
                f"give it {self.least_memory_bytes >> 20}M at least",
            )
        return WorkerProcess(self.name, self.adapter, self._user)

    def _make_database(self) -> None:
        self.start()
        self.stop()

    def _start_with(self, changes: Mapping[str, str]) -> None:
        worker = self._known_process()
        link = worker.start(self.directories.values(), self._timeout_s)
        self._confine()
        try:
            link.call(
                "open",
                directories={role: str(path) for role, path in self.directories.items()},
                home=str(worker.home),
                settings={**self._given, **changes},
                limits=asdict(self.limits),
            )
        except BaseException as error:
            worker.crash_stop()
            if isinstance(error, TierwiseError):
                raise TierwiseError(f"engine {self.name} cannot start: {error.message}", error.fix) from error
            raise

    def stop(self) -> None:
        """Close the database, then let the worker exit."""
        if self._process is None or not self.running:
            return
        try:
            self._link().call("close")
        finally:
            self._process.end(_END_TIMEOUT_S)

    def restart_cold(self, *, drop_caches: bool = False) -> ColdStart:
        """Restart cold, then drop the pages that opening the database has read."""
        cold = super().restart_cold(drop_caches=drop_caches)
        page_cache.drop_cached_pages(self.owned_directories, drop_caches=drop_caches)
        return cold

    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Send one request per statement."""
        for _, statement in statements:
            self._call("execute", statement=statement)

    def checkpoint(self) -> None:
        """Run the library's checkpoint, then write the kernel's dirty pages."""
        self._call("checkpoint")
        page_cache.write_out_dirty_pages(self.directories.values())

    def clients(self, program_json: str, clients: int, seed: int) -> ConnectedClients:
        """Clients on threads of the worker; several sets may run at the same time."""
        connected = EmbeddedClients(self._link, program_json, clients, seed)
        self._connected.add(connected)
        return connected

    def load_tables(self, program_json: str, seed: int) -> int:
        """Fill the tables in the worker."""
        return int(self._call("load_tables", program=program_json, seed=seed))

    def role_of(self, path: Path) -> Role | None:
        """Role by the placed role's directory that contains the file."""
        return next((role for role, made in self.directories.items() if made in path.parents), None)

    def waits_as(self, path: Path) -> Role | None:
        """Role of a wait for a file: the file's own, unless a log lies among files of another role."""
        return self.role_of(path)

    def processes(self) -> list[int]:
        """Only the worker."""
        return [] if self.server_pid is None else [self.server_pid]

    def counters(self) -> Counters:
        """Counters with the worker's CPU time: the library's and its clients' together."""
        totals = Counters.model_validate(self._call("counters"))
        return totals.changed(cpu_s=process_cpu_s(self.server_pid or 0))

    def settings(self) -> dict[str, str]:
        """Settings as the library reports them."""
        return dict(self._call("settings"))

    def make_commit_tables(self, clients: int) -> None:
        """Make the tables of the load of commits in the worker."""
        self._call("make_commit_tables", clients=clients)

    def commit_until_it_fails(self, ledger: CommitLedger, client: int, first: int) -> None:
        """Commit on a thread of the worker."""
        self._call("commit_until_it_fails", ledger=str(ledger.path), client=client, first=first)

    def found_commits(self) -> FoundCommits:
        """Read both tables in the worker."""
        return FoundCommits(**self._call("found_commits"))

    def check(self) -> IntegrityCheck:
        """Let the library check its files."""
        return IntegrityCheck.model_validate(self._call("check"))

    def version(self) -> str:
        """Version of the package that contains the library."""
        return importlib.metadata.version(self.package)

    def sampler(self) -> WaitSampler:
        """A sampler that inspects the client threads from outside the worker."""
        sessions = lambda: sum(clients.sessions for clients in list(self._connected))  # noqa: E731
        return WaitSampler(ThreadWaitProbe(self.processes(), self.waits_as, sessions, helped=self.helped))

    def failure(self) -> str | None:
        """The library's last output, if it ended unexpectedly."""
        if self._process is None or self._process.link is None or self.running:
            return None
        return self._process.failure() or f"engine {self.name} has ended"

    def _link(self) -> WorkerLink:
        link = self._known_process().link
        if link is None:
            raise TierwiseError(f"engine {self.name} does not run", "start it first")
        return link

    def _call(self, request: str, **arguments: Any) -> Any:
        try:
            return self._link().call(request, **arguments)
        except TierwiseError as error:
            if error.message.startswith(f"engine {self.name} "):
                raise
            raise TierwiseError(f"engine {self.name}: {error.message}", error.fix) from error
