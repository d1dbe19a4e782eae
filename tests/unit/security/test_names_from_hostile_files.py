"""What reads the names of tables runs as the server's user: its answer is checked, whoever wrote it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import pytest

from tierwise.capture import postgres_names
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.host import programs
from tierwise.model.errors import TierwiseError

ROW = {
    "path": "base/5/16384",
    "name": ["public", "orders"],
    "kind": "table",
    "table": None,
    "partitioned": None,
    "database": "shop",
    "size_bytes": 8192,
}
ANSWER = {"checkpoint_s": 1_700_000_000, "relations": [ROW], "unknown": 0, "unread": {}}
TARGET = replace(RecordingTarget(list, load_rules("postgres")), pid=os.getpid())


def read(monkeypatch: pytest.MonkeyPatch, output: str, *, status: int = 0) -> postgres_names.RelationNames:
    """What is made of an answer."""
    monkeypatch.setattr(programs, "run", lambda *_, **__: programs.FinishedProgram(status, output, ""))
    monkeypatch.setattr(postgres_names, "_user_of", lambda _: None)
    return postgres_names.read_names_as_server_user(TARGET)


def test_an_answer_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    names = read(monkeypatch, json.dumps(ANSWER | {"unread": {"5": "is closed", "7": "is closed"}}))
    assert names.relations[0]["name"] == "public.orders"
    assert "5, 7 have no names: is closed" in names.warnings[1]


@pytest.mark.parametrize(
    "output",
    [
        "[" * 500_000,
        "1",
        "{}x",
        '{"problem": "' + "a" * (8 << 20) + '"}',
        *(
            json.dumps(ANSWER | changed)
            for changed in (
                {"unread": {"5": "\ud800"}},
                {"unread": {str(number): "" for number in range(10_001)}},
                {"unread": {"5": 7}},
                {"unread": {"x": "y"}},
                {"unknown": "many"},
                {"unknown": 10**400},
                {"checkpoint_s": 10**17},
                {"checkpoint_s": -1},
                {"relations": [ROW | {"size_bytes": 10**30}]},
                {"relations": [ROW | {"name": ["public", "o" * 65]}]},
                {"relations": [ROW | {"name": ["public", "\ud800"]}]},
                {"relations": [ROW | {"path": "x" * 201}]},
                {"relations": [ROW | {"extra": 1}]},
                {"relations": [None]},
                {"relations": {}},
            )
        ),
    ],
)
def test_a_damaged_answer_is_refused_in_few_words(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    with pytest.raises(TierwiseError, match="--names-from-files: ") as refused:
        read(monkeypatch, output)
    assert len(refused.value.message) < 400


@pytest.mark.parametrize("status", [1, -9, -19])
def test_a_reader_that_was_ended_is_said(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    with pytest.raises(TierwiseError, match=f"no names: exit status {status}"):
        read(monkeypatch, "", status=status)


@pytest.mark.parametrize("field", ["problem", "unread"])
def test_a_reason_commands_no_terminal(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    reason = "\x1b]0;owned\x07\n" + "x" * 5000
    answer: dict[str, Any] = ANSWER | {field: {"5": reason} if field == "unread" else reason}
    try:
        said = " ".join(read(monkeypatch, json.dumps(answer)).warnings)
    except TierwiseError as refused:
        said = refused.message
    assert "?]0;owned??xxx" in said and "\x1b" not in said and len(said) < 800


def test_a_server_that_has_ended_gives_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TierwiseError, match="it has ended"):
        postgres_names.read_names_as_server_user(replace(TARGET, pid=2**22 + 1))
