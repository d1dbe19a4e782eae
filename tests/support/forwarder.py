"""Connections passed on from a port or a socket of this process to servers' Unix sockets, as a proxy does."""

from __future__ import annotations

import itertools
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def forwarding(*servers: Path, at: Path | None = None, as_pooler: bool = False) -> Iterator[int]:
    """Pass each connection on to the next of the servers' sockets, in turn.

    Args:
        servers: sockets of servers.
        at: path of a socket to listen on, in place of a port.
        as_pooler: give clients another process number than PostgreSQL's.

    Yields:
        The port; 0 with a path.
    """
    family = socket.AF_INET if at is None else socket.AF_UNIX
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1", 0) if at is None else str(at))
        listener.listen()
        threading.Thread(target=_accept, args=(listener, servers, as_pooler), daemon=True).start()
        try:
            yield listener.getsockname()[1] if at is None else 0
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, servers: Sequence[Path], as_pooler: bool) -> None:
    for server in itertools.cycle(servers):
        try:
            near, _ = listener.accept()
        except OSError:
            return
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(server))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=_pass_on, args=(*ends, as_pooler), daemon=True).start()


_KEY = re.compile(rb"(?<=K\x00\x00\x00\x0c)....(?=....Z)", re.DOTALL)
"""The process number in PostgreSQL's message BackendKeyData."""


def _pass_on(source: socket.socket, target: socket.socket, as_pooler: bool) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(_KEY.sub(b"\x7f\xff\xff\xff", data) if as_pooler else data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
