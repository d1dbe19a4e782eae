"""Runs the application on a socket until it is interrupted."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass

import uvicorn

from tierwise.model.errors import TierwiseError
from tierwise.serve.app import application
from tierwise.serve.newcomers import Newcomers
from tierwise.serve.recordings import ServedRecordings
from tierwise.serve.simulator import Simulator

_LAST_ANSWERS_S = 2


@dataclass(frozen=True)
class Server:
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


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        TierwiseError: an address that is not this machine's, or a port in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        raise TierwiseError(
            f"--host {host} --port {port}: {error.strerror}",
            "give an address of this machine and a free port",
        ) from error
    return listening


def serve(recordings: ServedRecordings, simulator: Simulator, listening: socket.socket, host: str) -> Server:
    """A server for some recordings with a new random token.

    Args:
        recordings: the recordings.
        simulator: answers questions; closed when the server ends.
        listening: its socket.
        host: the address as the user gave it.
    """
    token, newcomers = secrets.token_urlsafe(24), Newcomers()
    config = uvicorn.Config(
        application(recordings, simulator, token, host, newcomers.admit),
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
    return Server(url, listening, uvicorn.Server(config))
