"""A recording as a trace, by the rules of the Trace Event Format that ui.perfetto.dev keeps."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.paths import RECORDINGS
from support.recording_factory import ONE_COMMIT, write_recording
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.recording import Recording, redact_recording
from tierwise.report.recording.perfetto import perfetto_trace

EXAMPLE = RECORDINGS / "order-entry"
EVIL = 'p"\n</script>\u202e{{'
RUNNER = CliRunner()
NEEDED = {
    "X": {"ts", "dur", "pid", "tid", "name", "cat", "args"},
    "b": {"ts", "pid", "tid", "name", "cat", "id2", "args"},
    "e": {"ts", "pid", "tid", "name", "cat", "id2"},
    "M": {"pid", "tid", "name", "args"},
}
"""Phase of an event -> its keys besides ``ph``."""


def refuse_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def checked(text: str) -> dict[str, Any]:
    """A trace, after a strict check of each event and of what they make together."""
    content: dict[str, Any] = json.loads(text, parse_constant=refuse_constant)
    assert content.keys() == {"displayTimeUnit", "otherData", "traceEvents"}
    assert content["displayTimeUnit"] in ("ms", "ns")
    open_pairs: dict[tuple[Any, ...], float] = {}
    slices = defaultdict(list)
    for event in content["traceEvents"]:
        assert event.keys() == NEEDED[event["ph"]] | {"ph"}, event
        assert type(event["pid"]) is int and type(event["tid"]) is int
        assert isinstance(event["name"], str) and event["name"].isprintable()
        assert all(type(argument) in (int, str, bool) for argument in event.get("args", {}).values())
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"].keys() == {"name"}
            continue
        assert event["ts"] >= 0
        key = event["pid"], event["cat"], event["name"], event.get("id2", {}).get("local")
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
        elif event["ph"] == "b":
            assert key not in open_pairs and int(key[3], 16) >= 0
            open_pairs[key] = event["ts"]
        else:
            assert event["ts"] >= open_pairs.pop(key)
    assert not open_pairs, "asynchronous events that do not end"
    for track in slices.values():
        require_nesting(sorted(track))
    named = {
        (trace_event["pid"], trace_event["tid"])
        for trace_event in content["traceEvents"]
        if trace_event["name"] == "thread_name"
    }
    assert slices.keys() <= named, "a track without a name"
    return content


def require_nesting(track: list[tuple[float, float]]) -> None:
    """Slices of a track follow each other or lie within each other; a nanosecond is lost to rounding."""
    ends: list[float] = []
    for start, negative in track:
        while ends and ends[-1] <= start + 0.002:
            ends.pop()
        assert not ends or start - negative <= ends[-1] + 0.002, f"a slice at {start} overlaps another"
        ends.append(start - negative)


def events_of(text: str, phase: str) -> list[dict[str, Any]]:
    return [trace_event for trace_event in json.loads(text)["traceEvents"] if trace_event["ph"] == phase]


def test_a_commit_is_on_its_tracks(tmp_path: Path) -> None:
    made = perfetto_trace(Recording.open(write_recording(tmp_path / "rec")))
    checked(made.text)
    assert (made.events, made.of_events) == (11, 11)
    slices = {
        (event["tid"], event["ts"]): (event["name"], event["dur"]) for event in events_of(made.text, "X")
    }
    assert slices[1, 1000.0] == ("waiting: sync log", 8000.0)
    assert slices[1, 0.0] == ("running", 1000.0)
    assert slices[3, 0.0] == ("waiting: no call", 9500.0)
    assert slices[2, 500.0] == ("write log", 100.0), "the send is no call on a file"
    requests = [
        (event["name"], event["ts"], event["args"].get("size_bytes")) for event in events_of(made.text, "b")
    ]
    assert requests == [("write log", 1100.0, 8192), ("flush", 5000.0, 0)]
    names = {event["args"]["name"] for event in events_of(made.text, "M")}
    assert names >= {"postgres", "postgres 10 (session): states", "device sdb1 (log)"}


@pytest.mark.parametrize(
    "about", sorted(RECORDINGS.glob("*/about.json")), ids=lambda about_file: about_file.parent.name
)
def test_shipped_recordings_are_valid_traces(about: Path) -> None:
    made = perfetto_trace(Recording.open(about.parent), limit=20_000)
    events = checked(made.text)
    assert 0 < made.events <= 20_000
    assert events["otherData"]["events"] == made.events <= made.of_events


def test_a_cut_trace_has_all_tracks_up_to_the_same_moment(tmp_path: Path) -> None:
    every = perfetto_trace(Recording.open(EXAMPLE), limit=5_000_000)
    assert every.events == every.of_events
    cut = perfetto_trace(Recording.open(EXAMPLE), limit=1_000)
    assert 900 < cut.events <= 1_000 and cut.of_events == every.of_events
    begun = ("X", "b")
    last = max(event["ts"] for phase in begun for event in events_of(cut.text, phase))
    expected = [
        trace_event
        for trace_event in json.loads(every.text)["traceEvents"]
        if trace_event["ph"] in begun and trace_event["ts"] <= last
    ]
    assert len(expected) == sum(len(events_of(cut.text, phase)) for phase in begun)


def test_asynchronous_calls_may_overlap(tmp_path: Path) -> None:
    calls = [
        (0, 0, 500_000, 3_000_000, "write", 0, 0, 8192, True, False),
        (1, 0, 1_000_000, 9_000_000, "sync", 0, None, 0, False, False),
        (2, 0, 600_000, 2_000_000, "write", 0, 8192, 8192, True, True),
    ]
    made = perfetto_trace(Recording.open(write_recording(tmp_path / "rec", {**ONE_COMMIT, "calls": calls})))
    checked(made.text)
    own = [event for event in events_of(made.text, "b") if event["cat"] == "asynchronous call"]
    assert [event["args"].get("failed") for event in own] == [None, True]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    rows = {
        **ONE_COMMIT,
        "threads": [(0, 10, 10, EVIL, "session"), (1, 20, 20, "client", "client")],
        "files": [(0, f"/d/{EVIL}", "log", 0, 0), (1, "socket:[7]", None, None, 0)],
    }
    made = perfetto_trace(Recording.open(write_recording(tmp_path / "rec", rows)))
    checked(made.text)
    assert all(line.isprintable() for line in made.text.splitlines())


def test_a_redacted_recording_exports_no_path(tmp_path: Path) -> None:
    open_ = perfetto_trace(Recording.open(EXAMPLE), limit=2_000)
    assert any("file" in event["args"] for event in events_of(open_.text, "X"))
    redact_recording(EXAMPLE, tmp_path / "redacted")
    hidden = perfetto_trace(Recording.open(tmp_path / "redacted"), limit=2_000)
    checked(hidden.text)
    assert hidden.events == open_.events
    every = [*events_of(hidden.text, "X"), *events_of(hidden.text, "b")]
    assert not [event for event in every if "/" in json.dumps(event["args"])]
    assert not [event for event in every if "file" in event["args"]]


def test_no_output_replaces_a_file_of_a_recording(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "r")
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    for name in ("about.json", "calls.parquet"):
        asked = ["recording", "export", str(made), "--perfetto", str(made / name)]
        with pytest.raises(TierwiseError, match=f"{name} is a file of a recording"):
            RUNNER.invoke(app, asked, catch_exceptions=False)
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before
    beside = ["recording", "export", str(made), "--perfetto", str(made / "trace.json")]
    assert RUNNER.invoke(app, beside).exit_code == 0
    assert RUNNER.invoke(app, beside).exit_code == 0, "an old trace is replaced"


def test_the_command_says_when_it_cut(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    asked = ["recording", "export", str(EXAMPLE), "--perfetto", str(file)]
    ran = RUNNER.invoke(app, [*asked, "--limit", "500"])
    assert ran.exit_code == 0 and "--limit NUMBER writes more" in ran.stdout
    checked(file.read_text("utf-8"))
    assert " of " not in RUNNER.invoke(app, [*asked, "--limit", "5000000"]).stdout
