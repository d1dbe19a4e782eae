"""A day recorded for real: beside a PostgreSQL that is restarted, and by a recorder that is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.committer import SQLITE, committing
from support.engine_contract import open_directory, places_in
from tierwise.capture.day_recorder import DayRecorder
from tierwise.capture.record import RecordingSession
from tierwise.capture.schedule import BurstSchedule, DayPlan
from tierwise.capture.target import RecordingTarget, load_rules
from tierwise.host import clean, ledger
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.predict.timeline import timeline_of
from tierwise.recording import Day, Recording

RECORD = [sys.executable, "-m", "tierwise", "record"]
WAIT_S = 60


def finished(folder: Path) -> list[Path]:
    return sorted(file.parent for file in folder.glob("*/about.json"))


def await_recordings(folder: Path, count: int, recorder: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while len(finished(folder)) < count:
        assert recorder.poll() is None, recorder.communicate()
        assert time.monotonic() < deadline, "there are too few recordings"
        time.sleep(0.05)


def test_a_day_goes_on_after_a_restart(tmp_path: Path) -> None:
    out = tmp_path / "day"
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres(), {}) as server:
        server.init(places_in(directory, server.roles))
        server.start()
        pgbench = [str(embedded_postgres().bin / "pgbench"), "-n", server.dsn()]
        subprocess.run([*pgbench, "-i", "-q", "-s", "1"], capture_output=True, check=True)
        load = [*pgbench, "-N", "-c", "2", "-T", str(WAIT_S)]
        first = server.server_pid
        # Of so long a day few bursts cannot use the cost, also where other programs disturb the comparison.
        command = [*RECORD, "-o", str(out), "--pid", str(first), "--duration", "10min", "--every", "5s"]
        command += ["--duty", "1/20"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with (
            subprocess.Popen(load, **quiet),
            subprocess.Popen(  # type: ignore[call-overload]
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as recorder,
        ):
            await_recordings(out, 1, recorder)
            server.stop()
            server.start()
            assert server.server_pid != first
            with subprocess.Popen(load, **quiet) as again:  # type: ignore[call-overload]
                await_recordings(out, 2, recorder)
                recorder.send_signal(signal.SIGINT)
                output, errors = recorder.communicate(timeout=WAIT_S)
                again.kill()
    assert recorder.returncode == 0, errors
    assert "the database was restarted" in output
    assert "% of the day's throughput" in output
    names = [folder.name for folder in finished(out)]
    assert len(names) >= 2
    assert all(name in output for name in names)
    for folder in finished(out):
        Recording.open(folder, whole=True)
    day = timeline_of(Day.open(out))
    assert day.unit == "transactions"
    assert day.moment(day.chosen["peak"]).rate_per_s
    assert not ledger.entries()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_the_recorder_the_day_is_kept(
    number: signal.Signals, tmp_path: Path, run_dir: Path
) -> None:
    out = tmp_path / "day"
    command = [*RECORD, "-o", str(out), "--rules", SQLITE, "--duration", "1h", "--every", "1s"]
    command += ["--each", "500ms", "--duty", "1/2", "--burst", "50ms", "--format", "json", "--pid"]
    environment = {**os.environ, "TIERWISE_RUN_DIR": str(run_dir)}
    with committing(tmp_path / "app.db-wal") as process:
        recorder = subprocess.Popen(
            [*command, str(process.pid)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        await_recordings(out, 2, recorder)
        recorder.send_signal(number)
        output, errors = recorder.communicate(timeout=WAIT_S)
    if number == signal.SIGINT:
        assert recorder.returncode == 0
        assert "interrupted: the day ends" in errors
        assert len(json.loads(output)["day"]["moments"]) >= 2
    clean.clean()
    assert len(Day.open(out).recordings) >= 2
    for folder in finished(out):
        Recording.open(folder, whole=True)
    assert not ledger.entries()


def test_what_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "day"
    gone = subprocess.run(
        [*RECORD, "-o", out, "--pid", "1", "--every", "10min"], capture_output=True, text=True, check=False
    )
    assert gone.returncode == 2
    assert "of no engine that tierwise knows" in gone.stderr
    assert not out.exists()


def test_an_interrupt_while_a_recording_is_finished_waits(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was complete on disk, and neither counted nor named; its directory of spooled events stayed."""
    finish = RecordingSession.finish

    def interrupted(session: RecordingSession) -> dict[str, Any]:
        signal.raise_signal(signal.SIGINT)
        return finish(session)

    monkeypatch.setattr(RecordingSession, "finish", interrupted)
    out, notes = tmp_path / "day", list[str]()
    with committing(tmp_path / "app.db-wal") as process:
        target = RecordingTarget(lambda: [process.pid], load_rules(SQLITE))
        plan = DayPlan(600.0, 5.0, BurstSchedule(0.5, 0.5, 0.05))
        day = DayRecorder(
            process.pid, lambda _: target, out, plan, progress=lambda _: None, note=notes.append
        )
        day.run()
    (recorded,) = finished(out)
    assert len(day.taken) == 1
    assert any(recorded.name in note for note in notes[:-1])  # a longer period may be noted after it
    assert "interrupted: the day ends" in notes[-1]
    assert not ledger.entries()
