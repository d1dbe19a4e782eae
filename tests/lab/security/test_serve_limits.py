"""`tierwise serve`: connections that never show the token keep nobody out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from support.engine_contract import until
from support.live_server import RECORDING, LiveServer, live_server

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("starlette", reason="needs the extra `serve`")

from tierwise.advise import AdviceOptions
from tierwise.serve.page_server import MOST, listening_socket, serve_recordings
from tierwise.serve.served_recordings import ServedRecordings
from tierwise.serve.simulation_queue import SimulationQueue

MANY = 300
ANOTHER_ADDRESS = "127.0.0.2"
HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """A server in this process, with an empty page."""
    monkeypatch.setattr("tierwise.serve.served_recordings.make_live_page", lambda *_: "page")
    simulator = SimulationQueue()
    listening = listening_socket("127.0.0.1", 0)
    recordings = ServedRecordings([RECORDING], AdviceOptions(["nvme-dc"]), simulator)
    running = serve_recordings(recordings, simulator, listening, "127.0.0.1")
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        yield LiveServer(running.url, None)
    finally:
        running.stop()
        thread.join(60)
    assert not thread.is_alive()


def connected(server: LiveServer, from_address: str = "127.0.0.1") -> socket.socket:
    host, port = server.host.split(":")
    return socket.create_connection((host, int(port)), timeout=60, source_address=(from_address, 0))


@contextmanager
def idle(server: LiveServer, count: int, from_address: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Connections that have sent half a header without the token."""
    with ExitStack() as undo:
        made = [undo.enter_context(connected(server, from_address)) for _ in range(count)]
        for connection in made:
            try:
                connection.sendall(HALF_A_HEADER)
            except OSError:
                continue  # It was closed in favour of a later one.
        yield made


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; does not wait."""
    connection.settimeout(0.001)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def asked(connection: socket.socket, server: LiveServer) -> bytes:
    """The first line of the answer to a request with the token, once all of it has come."""
    connection.settimeout(60)
    connection.sendall(f"GET /{server.token}/1/ HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\npage"):
        part = connection.recv(1 << 16)
        assert part, answer
        answer += part
    return answer.split(b"\r\n")[0]


def test_idle_connections_of_one_address_keep_nobody_out(server: LiveServer) -> None:
    with idle(server, MANY) as made:
        until(lambda: sum(map(is_closed, made)) >= MANY - MOST)
        assert server.get(f"/{server.token}/1/").status == 200


def test_a_hundred_browsers_that_start_at_once_are_answered(server: LiveServer) -> None:
    with ExitStack() as undo:
        made = [undo.enter_context(connected(server)) for _ in range(100)]
        assert all(asked(connection, server).startswith(b"HTTP/1.1 200") for connection in made)


def test_another_address_loses_no_connection_to_them(server: LiveServer) -> None:
    with connected(server) as waiting:
        waiting.sendall(b"GET ")
        with idle(server, MANY, ANOTHER_ADDRESS) as made:
            until(lambda: sum(map(is_closed, made)) >= MANY - MOST)
            waiting.sendall(f"/{server.token}/1/ HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            assert waiting.recv(100).startswith(b"HTTP/1.1 200")


def test_a_connection_with_the_token_outlasts_later_ones_without(server: LiveServer) -> None:
    with connected(server) as known:
        assert asked(known, server).startswith(b"HTTP/1.1 200")
        with idle(server, MANY):
            assert asked(known, server).startswith(b"HTTP/1.1 200")


def test_a_header_that_does_not_end_is_cut_off(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.serve.page_server.WITHIN_S", 0.5)
    with connected(server) as silent, connected(server) as slow:
        sending = True

        def is_cut_off() -> bool:
            nonlocal sending
            try:
                slow.sendall(b"X: y\r\n")  # One line after the other, each in time.
            except OSError:
                sending = False
            return not sending and is_closed(silent)

        slow.sendall(HALF_A_HEADER)
        until(is_cut_off)


def test_a_request_without_the_token_ends_its_connection(server: LiveServer) -> None:
    with connected(server) as stranger:
        stranger.sendall(HALF_A_HEADER + b"\r\n")
        answer = b""
        while part := stranger.recv(1000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 404") and b"connection: close" in answer.lower()


def test_the_command_closes_an_idle_connection_after_ten_seconds() -> None:
    with live_server(str(RECORDING), "--devices", "nvme-dc") as started, connected(started) as silent:
        began_s = time.monotonic()
        silent.settimeout(60)
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b""
        assert time.monotonic() - began_s > 9
