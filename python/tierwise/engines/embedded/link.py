"""The parent's end of the connection to an embedded engine's worker; usable from any thread."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tierwise.model.errors import TierwiseError

READY = b"\n"
"""The first byte from a worker that has loaded its engine."""


class WorkerLink:
    """One connection to one worker. Requests may overlap: each answer carries the number of its request."""

    def __init__(self, connection: socket.socket, ended: Callable[[], TierwiseError]) -> None:
        """Take over the connection.

        Args:
            ended: gives the error for pending requests once the worker has closed the connection.
        """
        self._connection = connection
        self._ended = ended
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._open = True
        threading.Thread(target=self._receive, name="worker-link", daemon=True).start()

    @property
    def open(self) -> bool:
        """Whether the worker is still at the other end."""
        return self._open

    def call(self, request: str, **arguments: Any) -> Any:
        """Send one request and wait for its answer, without a time limit.

        Raises:
            TierwiseError: with the worker's error, or if the worker has ended.
        """
        number, answer = next(self._numbers), Future[Any]()
        line = json.dumps({"number": number, "request": request, "arguments": arguments}) + "\n"
        with self._lock:
            if not self._open:
                raise self._ended()
            self._waiting[number] = answer
            try:
                self._connection.sendall(line.encode())
            except OSError:
                raise self._ended() from None
        return answer.result()

    def close(self) -> None:
        """Close the connection, on which the worker exits."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _receive(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._connection.makefile("rb") as lines:
            for line in lines:
                self._deliver(json.loads(line))
        with self._lock:
            self._open = False
        for answer in self._waiting.values():
            answer.set_exception(self._ended())

    def _deliver(self, reply: dict[str, Any]) -> None:
        answer = self._waiting.pop(reply["number"])
        if problem := reply.get("problem"):
            answer.set_exception(TierwiseError(*problem))
        else:
            answer.set_result(reply["result"])
