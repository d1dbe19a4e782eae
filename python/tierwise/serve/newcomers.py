"""Connections that have not shown the token: few, and for a short time, so that they keep nobody out.

A connection is a newcomer until a request on it has the token. All users of a machine share the loopback
address, so that a limit for each address alone would let one of them keep the others out: of too many
newcomers, the one that has waited longest is closed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Peer = tuple[str, int]
"""Address and port of the other end."""

WITHIN_S = 10.0
"""Time for the whole header of the first request with the token."""
MOST_OF_ADDRESS = 32
MOST = 128


class Newcomers:
    """The connections of one server that have not shown the token."""

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
        counts = Counter(address for address, _ in self._waiting)
        if len(self._waiting) > MOST or counts[peer[0]] > MOST_OF_ADDRESS:
            busiest = counts.most_common(1)[0][0]
            self._close(next(entry for entry in self._waiting if entry[0] == busiest))

    def _close(self, peer: Peer) -> None:
        transport: Any = self._waiting[peer][0]
        self.admit(peer)
        transport.abort()


def _peer(transport: asyncio.BaseTransport) -> Peer:
    address, port, *_ = transport.get_extra_info("peername") or ("", 0)
    return str(address), int(port)
