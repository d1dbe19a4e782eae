"""Processes that end between two looks at /proc: one that is listed is gone when it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tierwise.capture.engine_counters import _thread_ids_in_namespace
from tierwise.host.processes import _process_table


def ending(place: Path) -> Callable[[Any], Callable[..., Any]]:
    """Makes a call fail as the kernel fails it below ``place`` once the process has ended."""

    def wrap(call: Any) -> Callable[..., Any]:
        def called(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and place in [Path(path), *Path(path).parents]:
                raise ProcessLookupError(3, "No such process", str(path))
            return call(path, *arguments, **options)

        return called

    return wrap


def test_a_process_that_ends_while_all_are_listed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.getppid()
    assert pid in _process_table()
    ends = ending(Path(f"/proc/{pid}/stat"))
    monkeypatch.setattr(os, "stat", ends(os.stat))
    monkeypatch.setattr(Path, "read_text", ends(Path.read_text))
    assert pid not in _process_table() and 1 in _process_table()


def test_a_process_that_ends_while_its_threads_are_listed_has_no_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = ending(Path(f"/proc/{os.getppid()}/task"))
    monkeypatch.setattr(os, "scandir", ends(os.scandir))
    monkeypatch.setattr(os, "listdir", ends(os.listdir))
    assert os.getpid() in _thread_ids_in_namespace([os.getppid(), os.getpid()])
