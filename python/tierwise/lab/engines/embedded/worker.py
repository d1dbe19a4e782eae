"""The worker process of an embedded engine.

It answers one JSON object per line of the connection that it is given, each on its own thread. It exits when
the other end disconnects, also if its owner was killed.

It runs statements of untrusted workloads. So :mod:`.process` starts it without privileges and, where the
kernel has Landlock, it can access only the database's files.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tierwise import _core
from tierwise.lab.engines import commit_load
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.embedded.embedded_adapter import EmbeddedAdapter, OpenParameters
from tierwise.lab.engines.embedded.worker_process import READY
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/null", "/dev/urandom")
"""Paths that a library may read besides its own code: other libraries, time zones, the machine's size."""


class EngineWorker:
    """One adapter, its sets of clients, and the requests for both."""

    def __init__(self, adapter: EmbeddedAdapter) -> None:
        self._adapter = adapter
        self._numbers = itertools.count()
        self._clients: dict[int, _core.Clients] = {}

    def answer(self, request: str, arguments: dict[str, Any]) -> object:
        """Execute a request, the worker's own or the adapter's; give its result as JSON-compatible data."""
        own: Callable[..., object] | None = getattr(self, f"_do_{request}", None)
        result = (own or getattr(self._adapter, request))(**arguments)
        return result.model_dump() if isinstance(result, BaseModel) else result

    def _do_open(
        self,
        directories: dict[str, str],
        home: str,
        settings: dict[str, str],
        limits: dict[str, int | None],
    ) -> None:
        placed = {Role(role): Path(path) for role, path in directories.items()}
        self._adapter.open(OpenParameters(placed, Path(home), settings, ResourceLimits(**limits)))

    def _do_load_tables(self, program: str, seed: int) -> int:
        return _core.load_tables(*self._adapter.driver(), program, seed)

    def _do_connect(self, program: str, clients: int, seed: int) -> int:
        number = next(self._numbers)
        self._clients[number] = _core.Clients(*self._adapter.driver(), program, clients, seed)
        return number

    def _do_run(self, number: int, limits: list[Any], options: dict[str, Any]) -> str:
        return self._clients[number].run(*limits, **options)

    def _do_reconnect(self, number: int) -> None:
        self._clients[number].reconnect()

    def _do_disconnect(self, number: int) -> None:
        self._clients.pop(number).close()

    def _do_make_commit_tables(self, clients: int) -> None:
        self._adapter.make_commit_tables()
        with contextlib.closing(self._adapter.commit_session()) as session:
            commit_load.insert_commit_items(session, clients)

    def _do_commit_until_it_fails(self, ledger: str, client: int, first: int) -> None:
        book = commit_load.CommitLedger(Path(ledger))
        with contextlib.closing(self._adapter.commit_session()) as session:
            commit_load.commit_until_failure(session, book, client, first)

    def _do_found_commits(self) -> dict[str, Any]:
        with contextlib.closing(self._adapter.commit_session()) as session:
            return asdict(commit_load.read_found_commits(session))

    def _do_close(self) -> None:
        for number in list(self._clients):
            self._do_disconnect(number)
        self._adapter.close()


def serve_requests(worker: EngineWorker, connection: socket.socket) -> None:
    """Answer every request until the other end disconnects."""
    sending = threading.Lock()

    def answer(call: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"number": call["number"]}
        try:
            reply["result"] = worker.answer(call["request"], call["arguments"])
        except BaseException as error:
            reply["problem"] = _explain(error)
        with sending, contextlib.suppress(OSError):
            connection.sendall(json.dumps(reply).encode() + b"\n")

    with connection.makefile("r", encoding="utf-8") as calls:
        for line in calls:
            threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()


def _explain(error: BaseException) -> tuple[str, str]:
    """The error in one line, and its fix."""
    if isinstance(error, TierwiseError):
        return error.message, error.fix
    message = next(iter(str(error).splitlines()), "") or type(error).__name__
    if "No space left on device" in message or "disk full" in message:
        return message, "give the device of that role more space, or load less"
    if re.search("(?i)out of memory|cannot allocate", message):
        return message, "give the engine more memory"
    return message, "mend what the message names"


def main() -> None:
    """Load the engine and serve. Earlier errors go to the log and to the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--adapter", required=True, help="module:Class")
    parser.add_argument("--connection", required=True, type=int, help="descriptor of an open socket")
    parser.add_argument("--own", nargs="+", required=True, help="directories that it may write to")
    arguments = parser.parse_args()
    connection = socket.socket(fileno=arguments.connection)
    module, _, attribute = arguments.adapter.partition(":")
    adapter: EmbeddedAdapter = getattr(importlib.import_module(module), attribute)()
    _core.confine(readable=[*_SYSTEM, sys.prefix, *sys.path], writable=arguments.own)
    with contextlib.suppress(OSError):
        connection.sendall(READY)
        serve_requests(EngineWorker(adapter), connection)
    os._exit(0)
