"""Where the time of a recording went, and which other programs used the machine beside its server.

Parts are totals of waits.
:mod:`tierwise.predict.time_savings` computes the savings of a faster device.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from tierwise import _core
from tierwise.model import numbers
from tierwise.model.names import sum_by_key
from tierwise.model.placement import Role
from tierwise.results.measurements import StrictModel, TolerantModel

ClientKind = Literal["pooler", "load_generator", "tool", "replica", "remote", "application"]
"""What a client program is, by its name, or by the sockets on which it listens."""
_KINDS: dict[ClientKind, str] = {
    "pooler": "a connection pooler or proxy",
    "load_generator": "a load generator",
    "tool": "a client tool",
    "replica": "another server or a receiver of the log",
    "remote": "other hosts",
    "application": "an application",
}


class ClientProgram(TolerantModel):
    """A program that held sessions of the recorded server."""

    program: str
    """Its name; empty for peers on other hosts."""
    kind: ClientKind = "application"
    processes: int = 0
    """Processes of that name, or addresses of other hosts."""
    sessions: int = 0
    """Sessions that it held at once."""
    served: int = 0
    """Connections that it served itself at that time: the clients of a pooler."""


class ForeignProgram(TolerantModel):
    """A program that used processors beside the recorded ones."""

    program: str
    """Its name, as the kernel shows it."""
    pids: list[int] = []
    """Its processes, the busiest first; at most a few."""
    cpu_share: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """Processor time during bursts, as a share of all cores."""


def pooler_of(clients: Sequence[ClientProgram]) -> ClientProgram | None:
    """The pooler that holds most of the sessions, if one does."""
    held = sum(client.sessions for client in clients)
    poolers = [client for client in clients if client.kind == "pooler" and 2 * client.sessions > held]
    return poolers[0] if poolers else None


def clients_sentence(clients: Sequence[ClientProgram]) -> str:
    """The programs that held the sessions: ``clients: pgbench (a load generator), 8 sessions``."""
    return "clients: " + "; ".join(map(_described, clients))


def _described(client: ClientProgram) -> str:
    sessions = numbers.counted_noun(client.sessions, "session")
    if client.kind == "remote":
        addresses = numbers.counted_noun(client.processes, "address", "addresses")
        return f"{_KINDS[client.kind]}, {sessions} from {addresses}"
    served = f" for {numbers.counted_noun(client.served, 'client')} of its own" if client.served else ""
    return f"{client.program} ({_KINDS[client.kind]}), {sessions}{served}"


def pooler_warning(clients: Sequence[ClientProgram]) -> str | None:
    """What a pooler between users and sessions means for every answer; ``None`` without one."""
    pooler = pooler_of(clients)
    if pooler is None:
        return None
    users = f" for {numbers.counted_noun(pooler.served, 'client')} of its own" if pooler.served else ""
    return (
        f"the sessions are those of {pooler.program}, {_KINDS['pooler']}: it held {pooler.sessions}{users}. "
        "Latency is the server's, without the wait in the pooler, and a number of clients means sessions of "
        "the server, not users"
    )


Part = Literal[
    "cpu", "runnable", "log_device", "log_queue", "read", "write", "lock", "client", "sleep", "other"
]
LOG_PARTS: tuple[Part, ...] = ("log_device", "log_queue")
"""Parts that are waits for the log: for its device, and for another session's flush."""
MOST_FILES = 40
ThreadClass = Literal["session", "client", "log_writer", "background", "kernel", "other"]


class TimeSlice(StrictModel):
    """Time that one class of threads spent on one part."""

    part: Part
    role: Role | None
    """Role of the file, if the part is for a file that has one."""
    time_s: float
    """Summed over threads."""
    share: float
    """Of the class's time."""


class ClassTime(StrictModel):
    """The time of one class of threads."""

    name: ThreadClass = Field(alias="class")
    threads: int
    lived_s: float
    """Lifetime of the threads within bursts, summed."""
    slices: list[TimeSlice]

    @property
    def parts(self) -> dict[Part, float]:
        """Part -> share of the class's time, all roles together; they sum to 1."""
        return sum_by_key((class_slice.part, class_slice.share) for class_slice in self.slices)


class DeviceRequests(StrictModel):
    """Requests to devices."""

    reads: int
    writes: int
    flushes: int
    read_bytes: int
    written_bytes: int


class RoleTraffic(DeviceRequests):
    """Requests of one role to its devices."""

    role: Role | None
    """``None`` stands for requests of no file: a file system's journal, and other programs."""
    devices: list[str]
    size_bytes: int
    syncs: int
    """Syncs that threads requested."""
    busy_s: float
    """Time in which at least one request was under way."""
    waited_s: float
    """Time that threads waited for its files in calls, summed."""


class FileTraffic(DeviceRequests):
    """Requests of one file to its device."""

    file: int
    """Its number in the recording's table of files."""
    path: str
    role: Role | None
    size_bytes: int
    waited_s: float
    session_waited_s: float
    """The part of that which client sessions waited."""
    device_s: float
    """Time that its requests spent at the device, summed."""


class Breakdown(StrictModel):
    """Where the time of a recording went."""

    span_s: float
    """Time in bursts."""
    bursts: int
    cores: int
    busy_share: float
    """Share of all cores' time that recorded threads used."""
    classes: list[ClassTime]
    roles: list[RoleTraffic]
    files: list[FileTraffic]
    """The files with the most wait time."""
    sum_error: float
    """Largest difference between any thread's parts and its lifetime, as a share of the lifetime."""


def break_down(path: Path, most_files: int = MOST_FILES) -> Breakdown:
    """Say where the time of a recording went, with at most ``most_files`` files."""
    return Breakdown.model_validate_json(_core.profile_recording(path, most_files))
