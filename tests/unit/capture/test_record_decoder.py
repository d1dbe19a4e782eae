"""When bursts are decoded, and what is then said of their files."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tierwise import _core
from tierwise.capture import decoder
from tierwise.capture.decoder import Burst, Decoder
from tierwise.capture.devices import Devices
from tierwise.capture.facts import FileFacts
from tierwise.model.roles import Role


class Recorder:
    """Bursts without events: decoding one asks for its files."""

    def __init__(self, bursts: list[list[str]]) -> None:
        self.bursts, self.told, self.threads = bursts, [], set()  # type: ignore[var-annotated]

    def decode(self, resolve: Callable[[str], str]) -> int | None:
        if not self.bursts:
            return None
        self.threads.add(threading.current_thread().name)
        self.told.append(json.loads(resolve(json.dumps(self.bursts.pop(0)))))
        return 0


def decoder_of(recorder: Recorder) -> Decoder:
    return Decoder(cast(_core.Recorder, recorder), FileFacts(Devices(), lambda _: Role.LOG))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "_LOOKS_EACH_S", 0.05)


def test_on_a_busy_machine_bursts_wait_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder.cpu, "idle_s", lambda: 0.0)
    recorder = Recorder([[], [], []])
    one = decoder_of(recorder)
    for _ in range(3):
        one.burst_ended(Burst(1000, []))
    time.sleep(2.5 * decoder._LOOKS_EACH_S)
    assert len(recorder.bursts) == 3
    one.finish()
    assert recorder.threads == {threading.current_thread().name}
    assert recorder.bursts == []


def test_with_a_core_to_spare_they_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder.cpu, "idle_s", lambda: 100 * time.monotonic())
    recorder = Recorder([[], []])
    one = decoder_of(recorder)
    one.burst_ended(Burst(1000, []))
    one.burst_ended(Burst(1000, []))
    until(lambda: not recorder.bursts)
    one.finish()
    assert recorder.threads == {"decoder"}


def test_no_more_waits_than_memory_is_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder.cpu, "idle_s", lambda: 0.0)
    recorder = Recorder([[], []])
    one = decoder_of(recorder)
    one.burst_ended(Burst(decoder._MOST_WAITING_BYTES, []))
    one.burst_ended(Burst(1000, []))
    until(lambda: len(recorder.bursts) == 1)
    one.finish()
    assert recorder.bursts == []


def test_a_file_is_what_it_was_when_its_burst_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder.cpu, "idle_s", lambda: 0.0)
    file = tmp_path / "temporary"
    recorder = Recorder([[str(file)], [str(file)]])
    one = decoder_of(recorder)
    for size_bytes in (1000, 2000):
        file.write_bytes(b"x" * size_bytes)
        burst = Burst(1, [str(file)])
        one.burst_ended(burst)
        until(lambda burst=burst: bool(burst.facts))  # type: ignore[misc]
    file.unlink()
    one.finish()
    assert [told[0]["size_bytes"] for told in recorder.told] == [1000, 2000]


def test_a_file_that_grew_is_asked_again_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("tierwise.capture.extents.extents_of", lambda path: asked.append(path) or [])
    file = tmp_path / "old"
    file.write_bytes(b"x")
    os.utime(file, (1, 1))
    facts = FileFacts(Devices(), lambda _: Role.DATA)
    if facts.of(str(file))["device"] is None:
        pytest.skip("the directory for tests is on no block device")
    facts.of(str(file))
    assert len(asked) == 1
    file.write_bytes(b"xx")
    facts.of(str(file))
    facts.of(str(file))
    assert len(asked) == 3, "what was written just now may have no place yet"
