"""What cannot be recorded is refused in one line, and leaves nothing behind."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from support.commands import tierwise
from tierwise.capture.schedule import BurstSchedule
from tierwise.cli import app
from tierwise.host import ledger
from tierwise.model.errors import TierwiseError

_ME = "PID OF THE TESTS"
"""Stands for it in parameters, which must be the same in every process that collects the tests."""


def refused(*arguments: str) -> str:
    """What the command says of these options, which it must not take."""
    result = CliRunner().invoke(app, ["record", *arguments])
    assert isinstance(result.exception, TierwiseError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give one of --pid PID, --engine NAME and -- COMMAND"),
        (["--pid", _ME, "--engine", "postgres"], "give one of"),
        (["--pid", "4194305"], "there is no process 4194305"),
        (["--pid", "-1"], "there is no process -1"),
        (["--pid", _ME], "is of no engine that tierwise knows"),
        (["--engine", "postgre"], "did you mean postgres?"),
        (["--engine", "versant"], "no process named vserver"),
        (["--names-from-files", "--", "true"], "only a running server gives the names"),
        (
            ["--names-from-files", "--pid", _ME, "--dsn", "postgresql://h"],
            "the server itself gives the names",
        ),
        (["--names-from-files", "--pid", _ME, "--rules", "sqlite"], "the files are PostgreSQL's"),
        (["--names-from-files", "--pid", _ME, "--rules", "postgres"], "the server's files give no names: "),
        (["--pid", _ME, "--rules", "none.toml"], "none.toml: No such file"),
        (["--pid", _ME, "--rules", "sqlite", "--duty", "2"], "--duty"),
        (["--pid", _ME, "--rules", "sqlite", "--duty", "often"], "--duty"),
        (["--pid", _ME, "--rules", "sqlite", "--duration", "0"], "--duration"),
        (["--pid", _ME, "--rules", "sqlite", "--burst", "1000"], "--burst"),
        (["--pid", _ME, "--rules", "sqlite", "--duration", "10m"], "--duration"),
        (["--pid", _ME, "--rules", "sqlite", "--until-usable", "soon"], "--until-usable"),
        (["--until-usable", "10min", "--", "true"], "--until-usable"),
        (
            ["--pid", _ME, "--rules", "sqlite", "--until-usable", "3s", "--duration", "4s"],
            "--until-usable: 3 s is shorter than --duration, 4 s",
        ),
        (["--pid", _ME, "--rules", "sqlite", "--each", "10s"], "--each: only a day"),
        (["--every", "10min", "--", "true"], "without -- COMMAND"),
        (["--pid", _ME, "--rules", "sqlite", "--every", "10min", "--duration", "5min"], "--every"),
        (
            ["--pid", _ME, "--rules", "sqlite", "--every", "10min", "--each", "3s", "--burst", "1s"],
            "--burst: with its pause, a burst of 1 s takes 10 s, and the recording 3 s",
        ),
        (
            ["--pid", _ME, "--rules", "sqlite", "--duration", "1s", "--burst", "10s"],
            "--burst: with its pause, a burst of 10 s takes 100 s, and the recording 1 s",
        ),
        (["--pid", _ME, "--rules", "sqlite", "--duration", "50ms"], "a shorter --burst or a greater --duty"),
        (["--pid", _ME, "--rules", "sqlite", "--dsn", "mysql://me:secret@db"], "TIERWISE_DSN"),
        (["--pid", _ME, "--rules", "sqlite", "--buffer-content"], "give --dsn or --dsn-file"),
        (["--", "no-such-program"], "no-such-program is of no engine"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_options_that_make_no_sense(
    run_dir: Path, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    out = tmp_path / "recording"
    line = refused(
        "-o", str(out), *(str(os.getpid()) if argument == _ME else argument for argument in arguments)
    )
    assert expected in line
    assert "\n" not in line
    assert not out.exists()


def test_a_recording_until_it_is_usable_takes_no_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first window ends then too, which is otherwise 60 s long."""
    taken = list[float | None]()

    def record(_target: object, _out: object, schedule: BurstSchedule, *_: object) -> NoReturn:
        taken.append(schedule.seconds)
        raise TierwiseError("enough", "")

    monkeypatch.setattr("tierwise.cli.record.record_running_database", record)
    refused("-o", "out", "--pid", str(os.getpid()), "--rules", "sqlite", "--until-usable", "3s")
    assert taken == [3.0]


def test_a_thread_is_refused_with_its_process(tmp_path: Path) -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        line = refused("-o", str(tmp_path / "out"), "--pid", str(thread.native_id), "--rules", "sqlite")
    finally:
        ended.set()
        thread.join()
    assert f"is a thread of process {os.getpid()}" in line and f"give --pid {os.getpid()}" in line


def test_one_line_and_status_2(run_dir: Path) -> None:
    done = tierwise("record", "-o", "x", "--pid", "4194305")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_root_that_may_not_load_programs_is_told_what_it_needs(run_dir: Path, tmp_path: Path) -> None:
    line = refused("-o", str(tmp_path / "recording"), "--pid", str(os.getpid()), "--rules", "sqlite")
    assert line.startswith("cannot record here: ")
    assert "give it CAP_BPF and CAP_PERFMON" in line if os.geteuid() == 0 else "run it as root" in line
    assert not list(tmp_path.iterdir())
    assert not ledger.entries()
