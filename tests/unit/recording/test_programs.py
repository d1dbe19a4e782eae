"""Programs beside a recorded server: what is said of them, and that a redaction hides their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.recording_factory import write_recording
from tierwise.recording import ClientProgram, Recording, clients_sentence, pooler_of, redact_recording

POOLER: dict[str, Any] = {
    "program": "pgbouncer",
    "kind": "pooler",
    "processes": 1,
    "sessions": 8,
    "served": 50,
}
APPLICATION: dict[str, Any] = {
    "program": "checkout-api",
    "kind": "application",
    "processes": 2,
    "sessions": 3,
}
REMOTE: dict[str, Any] = {"program": "", "kind": "remote", "processes": 2, "sessions": 9}


def programs(*counts: dict[str, Any]) -> list[ClientProgram]:
    return [ClientProgram(**count) for count in counts]


def test_clients_are_named_with_what_they_are() -> None:
    sentence = clients_sentence(programs(POOLER, APPLICATION, REMOTE))
    assert "pgbouncer (a connection pooler or proxy), 8 sessions for 50 clients of its own" in sentence
    assert "checkout-api (an application), 3 sessions" in sentence
    assert "other hosts, 9 sessions from 2 addresses" in sentence


def test_a_pooler_counts_where_it_holds_most_sessions() -> None:
    assert pooler_of(programs(POOLER, APPLICATION)) == ClientProgram(**POOLER)
    assert pooler_of(programs(POOLER, REMOTE)) is None
    assert pooler_of([]) is None


def test_every_answer_says_that_sessions_are_not_users(tmp_path: Path) -> None:
    pooled = Recording.open(write_recording(tmp_path / "pooled", clients=[POOLER]))
    (warning,) = [text for text in pooled.warnings if "pgbouncer" in text]
    assert "50 clients of its own" in warning
    assert "Latency is the server's" in warning
    assert "not users" in warning
    direct = Recording.open(write_recording(tmp_path / "direct", clients=[APPLICATION]))
    assert direct.warnings == []


def test_names_of_other_programs_are_redacted(tmp_path: Path) -> None:
    foreign = [{"program": "secret-job", "pids": [7], "cpu_share": 0.3}]
    source = write_recording(tmp_path / "r", clients=[POOLER, APPLICATION, REMOTE], foreign_programs=foreign)
    redact_recording(source, tmp_path / "out")
    text = (tmp_path / "out" / "about.json").read_text()
    assert "checkout" not in text and "pgbouncer" not in text and "secret" not in text
    about = Recording.open(tmp_path / "out").about
    assert [(client.kind, client.sessions) for client in about.clients] == [
        ("pooler", 8),
        ("application", 3),
        ("remote", 9),
    ]
    assert about.foreign_programs[0].cpu_share == 0.3
