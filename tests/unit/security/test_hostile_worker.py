"""A worker whose library a stranger has taken over ends its run: nothing waits for its answers for ever."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tierwise.lab.engines.embedded import worker_process
from tierwise.lab.engines.embedded.worker_process import WorkerLink
from tierwise.model.errors import TierwiseError

NESTED = b"[" * 100_000


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WorkerLink, socket.socket]]:
    """A link, and the worker's end of its connection."""
    monkeypatch.setattr(worker_process, "_LONGEST_ANSWER_BYTES", len(NESTED) + 1, raising=False)
    ours, theirs = socket.socketpair()
    with theirs:
        link = WorkerLink(ours, lambda: TierwiseError("engine duckdb has ended", "start it again"))
        yield link, theirs
        link.close()


@pytest.mark.parametrize(
    "answer",
    [
        NESTED,
        b"no JSON",
        b"7",
        b"[]",
        b"{}",
        b'{"number": 99, "result": 1}',
        b'{"number": [], "result": 1}',
        b'{"number": 0, "problem": 7}',
        b'{"number": 0, "problem": ["one"]}',
        b'{"number": 0, "problem": ["a", "b", "c"]}',
        b'{"number": ' + b"1" * 5000 + b"}",
        b"x" * 150_000,
    ],
)
def test_what_is_no_answer_ends_the_connection(answer: bytes, ends: tuple[WorkerLink, socket.socket]) -> None:
    link, theirs = ends
    problems: list[str] = []

    def ask() -> None:
        with pytest.raises(TierwiseError) as refused:
            link.call("open")
        problems.append(refused.value.message)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    theirs.recv(1000)
    theirs.sendall(answer if answer[:1] == b"x" else answer + b"\n")
    asking.join(5)
    assert problems == ["engine duckdb has ended"]


def test_an_answer_is_given(ends: tuple[WorkerLink, socket.socket]) -> None:
    link, theirs = ends
    results: list[object] = []
    asking = threading.Thread(target=lambda: results.append(link.call("open")), daemon=True)
    asking.start()
    number = json.loads(theirs.recv(1000))["number"]
    theirs.sendall(json.dumps({"number": number, "result": [1]}).encode() + b"\n")
    asking.join(5)
    assert results == [[1]]
