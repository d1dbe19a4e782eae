"""Runs the application on a socket until it is interrupted; limits connections without the token."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections import Counter
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from tierwise.model.errors import os_errors
from tierwise.serve.live_app import guarded_application
from tierwise.serve.served_recordings import ServedRecordings
from tierwise.serve.simulation_queue import SimulationQueue

Peer = tuple[str, int]
"""Address and port of the other end."""

WITHIN_S = 10.0
"""Time for the whole header of the first request with the token."""
MOST = 128
"""Of browsers that all start at once, too: each is a newcomer until its first request is read."""


class UnauthenticatedConnections:
    """The connections of one server that have not shown the token: few, for a short time.

    A connection is a newcomer until a request on it has the token. All users of a machine share the loopback
    address, so that a limit for each address would let one of them keep the others out: of too many
    newcomers, the one of the busiest address that has waited longest is closed.
    """

    def __init__(self) -> None:
        self._waiting: dict[Peer, tuple[asyncio.BaseTransport, asyncio.TimerHandle]] = {}

    def admit(self, peer: Peer) -> None:
        """Forget a connection that has shown the token, or is closed."""
        if (known := self._waiting.pop(peer, None)) is not None:
            known[1].cancel()

    def watched(self) -> type[asyncio.Protocol]:
        """The protocol of the server's connections."""
        newcomers = self

        class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                newcomers._add(transport)

            def connection_lost(self, problem: Exception | None) -> None:
                newcomers.admit(_peer(self.transport))
                super().connection_lost(problem)

        return Watched

    def _add(self, transport: asyncio.BaseTransport) -> None:
        peer = _peer(transport)
        if not peer[1]:  # It has gone already.
            transport.close()
            return
        timer = asyncio.get_running_loop().call_later(WITHIN_S, self._close, peer)
        self._waiting[peer] = transport, timer
        if len(self._waiting) > MOST:
            busiest = Counter(address for address, _ in self._waiting).most_common(1)[0][0]
            self._close(next(entry for entry in self._waiting if entry[0] == busiest))

    def _close(self, peer: Peer) -> None:
        transport: Any = self._waiting[peer][0]
        self.admit(peer)
        transport.abort()


def _peer(transport: asyncio.BaseTransport) -> Peer:
    address, port, *_ = transport.get_extra_info("peername") or ("", 0)
    return str(address), int(port)


_LAST_ANSWERS_S = 2


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, simulator: SimulationQueue) -> None:
        super().__init__(config)
        self._simulator = simulator

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Before requests are waited for: uvicorn prints the trace of each that it cancels.
        self._simulator.end()
        await super().shutdown(sockets)


@dataclass(frozen=True)
class PageServer:
    """A server that listens.

    Attributes:
        url: address of the list of recordings, with the token.
    """

    url: str
    _socket: socket.socket
    _server: uvicorn.Server

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM, which is a normal end."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End :meth:`run` from another thread."""
        self._server.should_exit = True


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        TierwiseError: an address that is not this machine's, or a port in use.
    """
    with os_errors(f"--host {host} --port {port}", "give an address of this machine and a free port"):
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    return listening


def serve_recordings(
    recordings: ServedRecordings, simulator: SimulationQueue, listening: socket.socket, host: str
) -> PageServer:
    """A server for some recordings with a new random token."""
    token, newcomers = secrets.token_urlsafe(24), UnauthenticatedConnections()
    config = uvicorn.Config(
        guarded_application(recordings, simulator, token, host, newcomers.admit),
        http=newcomers.watched(),
        access_log=False,  # it would contain the token
        log_level="error",
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}/{token}/"
    return PageServer(url, listening, _Server(config, simulator))
