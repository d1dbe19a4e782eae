"""Recording for real: what is in a recording, and that nothing is left behind, also by a killed recorder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from support.committer import _COMMITS, SQLITE, committing
from support.kernel_programs import attached, await_attached, await_gone, loaded
from tierwise.capture.record import RecordingSession, StopCondition, record_command, record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget, load_rules, target_of_process
from tierwise.host import clean, ledger
from tierwise.model.errors import TierwiseError
from tierwise.recording import Recording


def quiet(_: str) -> None:
    """Nobody listens."""


def recording_target(process: subprocess.Popen[bytes]) -> RecordingTarget:
    rules = load_rules(SQLITE)
    return RecordingTarget(lambda: [process.pid], rules)


def test_a_command_is_recorded_whole(tmp_path: Path) -> None:
    file, out = tmp_path / "app.db-wal", tmp_path / "recording"
    command = [sys.executable, "-c", _COMMITS, str(file), "3"]
    recorded = record_command(command, load_rules(SQLITE), out, BurstSchedule(None, duty=1.0), quiet)
    assert recorded["losses"]["lost_events"] == 0
    assert len(recorded["bursts"]) == 1
    with duckdb.connect() as data:
        calls = f"'{out}/calls.parquet' c JOIN '{out}/files.parquet' f ON c.file = f.file"
        done = dict(data.sql(f"SELECT kind, count(*) FROM {calls} WHERE role = 'log' GROUP BY 1").fetchall())
        facts = "min(offset_bytes), max(offset_bytes), min(c.size_bytes)"
        written = data.sql(f"SELECT {facts} FROM {calls} WHERE kind = 'write' AND role = 'log'").fetchall()
    assert written[0][0] == 0
    assert written[0][2] == 4096
    assert done["sync"] == done["write"] > 10


@pytest.mark.parametrize(
    ("end", "expected"), [("exit 3", "ended with status 3"), ("kill -9 $$", "was ended by signal 9")]
)
def test_a_command_that_fails_is_told_with_where_its_recording_is(
    tmp_path: Path, end: str, expected: str
) -> None:
    out = tmp_path / "recording"
    with pytest.raises(TierwiseError, match=f"sh {expected}: .*{out}"):
        record_command(["sh", "-c", end], load_rules(SQLITE), out, BurstSchedule(None, duty=1.0), quiet)
    assert Recording.open(out, whole=True).about.bursts


def test_parts_of_a_thread_fill_each_burst(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with committing(tmp_path / "app.db-wal") as process:
        recorded = record_running_database(
            recording_target(process), out, BurstSchedule(3.0, duty=0.4, burst_s=0.1), quiet
        )
        assert process.poll() is None
    assert recorded["bursts"]
    traced_ns = sum(burst["end_ns"] - burst["start_ns"] for burst in recorded["bursts"])
    with duckdb.connect() as data:
        whole = data.sql(
            f"SELECT sum(end_ns - start_ns) FROM '{out}/states.parquet' s "
            f"JOIN '{out}/threads.parquet' t ON s.thread = t.thread WHERE tid = {process.pid}"
        ).fetchall()
    assert whole[0][0] == pytest.approx(traced_ns, rel=0.01)
    assert [check for check in recorded["checks"] if "sum" in check["name"] and not check["passed"]] == []


def test_the_target_is_left_as_it_was(tmp_path: Path) -> None:
    before = loaded()
    with committing(tmp_path / "app.db-wal") as process:
        record_running_database(
            recording_target(process), tmp_path / "recording", BurstSchedule(0.5, 0.5, 0.1), quiet
        )
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "TracerPid:\t0" in status
        assert process.poll() is None
    assert attached(os.getpid()) == 0
    await_gone(loaded() - before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.db-wal", "recording"]


def test_files_are_found_where_a_container_has_them(tmp_path: Path) -> None:
    """As in a container, a path means something else to the process than to us."""
    script = f'mount --bind {tmp_path} /mnt && exec {sys.executable} -c "$0" /mnt/app.db-wal 60'
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, _COMMITS])
    try:
        while not (tmp_path / "app.db-wal").exists():
            assert process.poll() is None
            time.sleep(0.01)
        target = target_of_process(process.pid, load_rules(SQLITE))
        out = tmp_path / "recording"
        record_running_database(target, out, BurstSchedule(3, 0.5, 0.1), quiet)
    finally:
        process.kill()
        process.wait()
    with duckdb.connect() as data:
        facts = f"SELECT path, size_bytes > 0 FROM '{out}/files.parquet' WHERE role = 'log'"
        files = data.sql(facts).fetchall()
    assert files == [("/mnt/app.db-wal", True)]


def test_a_killed_recorder_leaves_no_program_in_the_kernel(tmp_path: Path, run_dir: Path) -> None:
    before = loaded()
    with committing(tmp_path / "app.db-wal") as process:
        command = [sys.executable, "-m", "tierwise", "record", "--rules", SQLITE, "--duty", "1"]
        command += ["-o", str(tmp_path / "recording"), "--pid", str(process.pid)]
        recorder = subprocess.Popen(command, env={**os.environ, "TIERWISE_RUN_DIR": str(run_dir)})
        await_attached(recorder.pid)
        own = loaded() - before
        recorder.send_signal(signal.SIGKILL)
        recorder.wait()
        assert own, "it was killed too late"
        await_gone(own)
        clean.clean()
        assert process.poll() is None
    assert not ledger.entries()


def test_ctrl_c_keeps_what_was_taken(tmp_path: Path, run_dir: Path) -> None:
    out = tmp_path / "recording"
    with committing(tmp_path / "app.db-wal") as process:
        command = [
            sys.executable,
            "-m",
            "tierwise",
            "record",
            "--rules",
            SQLITE,
            "--duty",
            "1",
            "-o",
            str(out),
        ]
        recorder = subprocess.Popen([*command, "--pid", str(process.pid)], stdout=subprocess.DEVNULL)
        await_attached(recorder.pid)
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=60) == 0
    assert json.loads((out / "about.json").read_text())["losses"]["recorded_events"] > 0
    assert not ledger.entries()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with committing(tmp_path / "app.db-wal") as process, pytest.raises(TierwiseError, match="is not empty"):
        record_running_database(recording_target(process), tmp_path, BurstSchedule(0.5, 0.5, 0.1), quiet)
    assert (tmp_path / "something").exists()


def test_a_target_that_has_ended_leaves_no_directory(tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with committing(tmp_path / "app.db-wal") as process:
        target = recording_target(process)
    with pytest.raises(TierwiseError, match="does not run"):
        record_running_database(target, out, BurstSchedule(0.5, 0.5, 0.1), quiet)
    assert not out.exists()


def test_a_target_that_ends_ends_the_recording(tmp_path: Path) -> None:
    with committing(tmp_path / "app.db-wal", seconds=10) as process:
        recorded = record_running_database(
            recording_target(process), tmp_path / "recording", BurstSchedule(60, 0.5, 0.1), quiet
        )
    assert recorded["bursts"]
    assert recorded["duration_s"] < 30


def test_recording_goes_on_until_it_is_usable(tmp_path: Path) -> None:
    """Judged as a recording of its own after each second; it holds all bursts of all windows."""
    judged: list[tuple[int, int]] = []

    def is_usable(path: Path) -> bool:
        recording = Recording.open(path, whole=True)
        judged.append((len(recording.about.bursts), recording.connect().table("states").shape[0]))
        return len(judged) == 3

    with committing(tmp_path / "app.db-wal") as process:
        enough = StopCondition(is_usable, longest_s=60)
        recorded = record_running_database(
            recording_target(process),
            tmp_path / "recording",
            BurstSchedule(1.0, 0.5, 0.1),
            quiet,
            enough=enough,
        )
    assert len(judged) == 3
    assert judged == sorted(judged)
    recording = Recording.open(tmp_path / "recording", whole=True)
    assert (len(recorded["bursts"]), recording.connect().table("states").shape[0]) == judged[-1]
    assert 3.0 <= recording.about.duration_s < 30  # a busy machine is late
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.db-wal", "recording"]


def test_recording_ends_when_it_is_not_usable_in_time(tmp_path: Path) -> None:
    with committing(tmp_path / "app.db-wal") as process:
        enough = StopCondition(lambda _: False, longest_s=2)
        out = tmp_path / "recording"
        recorded = record_running_database(
            recording_target(process), out, BurstSchedule(1.5, 0.5, 0.1), quiet, enough=enough
        )
    assert 1.5 <= recorded["duration_s"] < 30


LEAST_LIMIT = 1_000_000


def test_a_recording_of_unknown_length_ends_at_its_limit_and_says_so(
    tmp_path: Path, memory_path: Path
) -> None:
    limited = BurstSchedule(None, 1.0, limit_bytes=LEAST_LIMIT)
    with committing(memory_path / "app.db-wal", pause_s=0.0001) as process:
        recorded = record_running_database(recording_target(process), tmp_path / "recording", limited, quiet)
    assert recorded["duration_s"] < 50
    assert any("ended early" in warning for warning in recorded["warnings"])


def test_a_full_recording_is_not_continued_until_it_is_usable(tmp_path: Path, memory_path: Path) -> None:
    judged: list[Path] = []

    def is_usable(path: Path) -> bool:
        judged.append(path)
        return False

    limited, enough = (
        BurstSchedule(None, 0.5, 0.5, limit_bytes=LEAST_LIMIT),
        StopCondition(is_usable, longest_s=120),
    )
    with committing(memory_path / "app.db-wal", pause_s=0.0001) as process:
        out = tmp_path / "recording"
        recorded = record_running_database(recording_target(process), out, limited, quiet, enough=enough)
    assert recorded["duration_s"] < 50
    assert not judged


def test_a_session_that_fails_ends_its_window(tmp_path: Path) -> None:
    """The window has no length, so that only the session's end can end it."""
    with committing(tmp_path / "app.db-wal") as process:
        target = recording_target(process)
        with RecordingSession(
            target, tmp_path / "recording", BurstSchedule(None, 0.5, 0.1), quiet
        ) as session:
            begun = threading.Event()
            window = threading.Thread(target=lambda: session.run(begun.set), daemon=True)
            window.start()
            assert begun.wait(30)
        window.join(30)
        assert not window.is_alive()
        assert not (tmp_path / "recording").exists()


def test_between_bursts_nothing_is_attached(tmp_path: Path) -> None:
    with committing(tmp_path / "app.db-wal") as process:
        target = recording_target(process)
        with RecordingSession(target, tmp_path / "recording", BurstSchedule(60, 0.5, 0.1), quiet) as session:
            assert not attached(os.getpid())
            session.begin_burst()
            assert attached(os.getpid())
            session.end_burst()
            assert not attached(os.getpid())
