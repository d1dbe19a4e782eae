"""Who holds a server's sessions: applications, poolers by name or by their sockets, and their own clients."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tierwise import _core
from tierwise.capture.target import ConnectedServers

_SERVER = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
ends = []
while True:
    ends.append(listener.accept()[0])
    ends[-1].sendall(b"x")
"""
"""Takes connections, and answers each with one byte."""
_CLIENT = """
import socket, sys, time
far = []
for _ in range(int(sys.argv[2])):
    far.append(socket.socket(socket.AF_UNIX))
    far[-1].connect(sys.argv[1])
    far[-1].recv(1)
if len(sys.argv) > 3:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[3])
    listener.listen()
    ends = []
    while True:
        ends.append(listener.accept()[0])
        ends[-1].sendall(b"x")
print("connected", flush=True)
time.sleep(600)
"""
"""Holds sessions of a server, and may take connections as a pooler does."""


@contextmanager
def program(home: Path, name: str, script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process of that name."""
    file = home / f"{name}-program" / name
    file.parent.mkdir(exist_ok=True)
    if not file.exists():
        shutil.copy(Path(sys.executable).resolve(), file)
    command = [file, "-c", script, *map(str, arguments)]
    prefix = {"PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(command, env=prefix, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def connected(path: Path) -> socket.socket:
    """A connection that was accepted."""
    deadline = time.monotonic() + 60
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(str(path))
        except OSError:
            client.close()
            assert time.monotonic() < deadline
            time.sleep(0.02)
            continue
        client.recv(1)
        return client


def clients(*pids: int) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = json.loads(_core.clients_seen("[]", pids))
    return seen


def test_applications_and_their_sessions_are_counted(open_path: Path) -> None:
    place = open_path / "server"
    with program(open_path, "toyd", _SERVER, place) as server:
        connected(place).close()
        with program(open_path, "checkout", _CLIENT, place, 3) as client:
            assert client.stdout is not None and client.stdout.readline() == "connected\n"
            (application,) = clients(server.pid)
    assert (application["program"], application["kind"]) == ("checkout", "application")
    assert (application["processes"], application["sessions"], application["served"]) == (1, 3, 0)


@pytest.mark.parametrize(
    ("name", "listens_at"),
    [("pgbouncer", "any"), ("odyssey", "any"), ("mypool", ".s.PGSQL.7432"), ("pool2", "mysql.sock")],
)
def test_a_pooler_is_known_by_its_name_or_by_where_it_listens(
    open_path: Path, name: str, listens_at: str
) -> None:
    place, pool = open_path / "server", open_path / listens_at
    with ExitStack() as undo:
        server = undo.enter_context(program(open_path, "toyd", _SERVER, place))
        connected(place).close()
        undo.enter_context(program(open_path, name, _CLIENT, place, 2, pool))
        users = [undo.enter_context(connected(pool)) for _ in range(5)]
        (pooler,) = clients(server.pid)
        assert len(users) == pooler["served"] == 5
    assert (pooler["program"], pooler["kind"], pooler["sessions"]) == (name, "pooler", 2)


def test_the_most_sessions_of_all_looks_count(open_path: Path) -> None:
    place = open_path / "server"
    with program(open_path, "toyd", _SERVER, place) as server:
        with connected(place), connected(place):
            seen = _core.clients_seen("[]", [server.pid])
        (most,) = json.loads(_core.clients_seen(seen, [server.pid]))
    assert most["sessions"] == 2


def test_a_client_on_the_loopback_is_a_process_and_one_elsewhere_an_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        near = socket.create_connection(("127.0.0.1", port))
        far, _ = listener.accept()
        with near, far:
            assert _core.socket_peers(os.fstat(near.fileno()).st_ino) == [os.getpid()]
            assert clients(os.getpid()) == [], "both ends are its own"


def test_a_program_without_a_server_talks_to_none(open_path: Path) -> None:
    place = open_path / "server"
    with program(open_path, "toyd", _SERVER, place):
        connected(place).close()
        with program(open_path, "app", _CLIENT, place, 1) as client:
            assert client.stdout is not None and client.stdout.readline() == "connected\n"
            talked_to = ConnectedServers(lambda: [client.pid])
            talked_to.look()
    assert not talked_to.any, "the peer is no server of a database"


@pytest.mark.parametrize("server_name", ["postgres", "mariadbd"])
def test_a_program_that_talks_to_a_server_is_found_also_through_a_pooler(
    open_path: Path, server_name: str
) -> None:
    place, pool = open_path / "server", open_path / "pool"
    with ExitStack() as undo:
        server = undo.enter_context(program(open_path, server_name, _SERVER, place))
        connected(place).close()
        undo.enter_context(program(open_path, "pgbouncer", _CLIENT, place, 1, pool))
        connected(pool).close()
        direct = undo.enter_context(program(open_path, "app", _CLIENT, place, 1))
        pooled = undo.enter_context(program(open_path, "app2", _CLIENT, pool, 1))
        for client in (direct, pooled):
            assert client.stdout is not None and client.stdout.readline() == "connected\n"
            talked_to = ConnectedServers(lambda pid=client.pid: [pid])  # type: ignore[misc]
            talked_to.look()
            assert talked_to.pids == {server.pid}
