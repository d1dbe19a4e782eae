"""Programs beside a recorded server: those that held its sessions, and others that used processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

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


class _Program(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class ClientProgram(_Program):
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


class ForeignProgram(_Program):
    """A program that used processors beside the recorded ones."""

    program: str
    """Its name, as the kernel shows it."""
    pids: list[int] = []
    """Its processes, the busiest first; at most a few."""
    cpu_share: float = 0.0
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
    sessions = _count(client.sessions, "session")
    if client.kind == "remote":
        addresses = _count(client.processes, "address", "addresses")
        return f"{_KINDS[client.kind]}, {sessions} from {addresses}"
    served = f" for {_count(client.served, 'client')} of its own" if client.served else ""
    return f"{client.program} ({_KINDS[client.kind]}), {sessions}{served}"


def pooler_warning(clients: Sequence[ClientProgram]) -> str | None:
    """What a pooler between users and sessions means for every answer; ``None`` without one."""
    pooler = pooler_of(clients)
    if pooler is None:
        return None
    users = f" for {_count(pooler.served, 'client')} of its own" if pooler.served else ""
    return (
        f"the sessions are those of {pooler.program}, {_KINDS['pooler']}: it held {pooler.sessions}{users}. "
        "Latency is the server's, without the wait in the pooler, and a number of clients means sessions of "
        "the server, not users"
    )


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
