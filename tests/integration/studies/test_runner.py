"""The runner on this machine's own storage: with a real PostgreSQL where a server matters, else SQLite."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from support.tiny_study import Watcher
from tierwise.host import clean, ledger
from tierwise.lab import studies as study
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.run_recording import RecordingDestination
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA
from tierwise.results.result_files import read_study_info

pytestmark = pytest.mark.usefixtures("run_dir")

STUDY = """
name = "tiny"
question = "?"
engines = ["{engine}"]
workload = "single_commit"
clients = 2
transactions = 50
warmup_transactions = 4
repeats = 2
baseline = "one"
[devices.own]
path = "{path}"
[devices.other]
path = "{path}"
[placements.one]
default = "own"
[placements.two]
log = "other"
default = "own"
[settings.postgres]
shared_buffers = "16MB"
"""


@pytest.fixture
def tiny(own: Path) -> study.Study:
    return study.parse_study(STUDY.format(path=own, engine="postgres"), "tiny.toml")


@pytest.fixture
def small(own: Path) -> study.Study:
    """The same without a server."""
    return study.parse_study(STUDY.format(path=own, engine="sqlite"), "tiny.toml")


def test_a_study_ends_with_complete_records(tiny: study.Study, own: Path, tmp_path: Path) -> None:
    watcher = Watcher()
    directory = runner.run_study(tiny, tmp_path / "results", watcher, seed=7)
    results = runner.finished_runs_in(directory)
    assert sorted(result.run_id for result in results) == [
        f"postgres/{p}/{r}" for p in ("one", "two") for r in (0, 1)
    ]
    for result in results:
        assert result.status == "ok", result.problems
        assert result.transactions == 50
        assert result.elapsed_s
        assert result.latency["all"].count == 50
        assert result.engine.settings["shared_buffers"] == "16MB"
        assert result.waits
        assert sum(share.share for share in result.waits.shares.values()) == pytest.approx(1)
        assert result.counters
        assert result.counters.log_bytes
        assert result.cpu
    assert duckdb.read_json(str(directory / runner.RESULTS_FILE)).count("*").fetchall() == [(4,)]
    assert not list(own.iterdir())


def test_a_failed_preparation_keeps_what_finished(tiny: study.Study, own: Path, tmp_path: Path) -> None:
    broken = tiny.model_copy(update={"settings": {"postgres": {"shared_bufers": "1MB"}}})
    with pytest.raises(TierwiseError, match="shared_bufers"):
        runner.run_study(broken, tmp_path / "results", Watcher(), seed=1)
    assert not list(own.iterdir())
    assert not ledger.entries()


def with_misplaced_undo(own: Path) -> str:
    """A placement that wants the undo, which SQLite does not have, on another device."""
    return STUDY.format(path=own, engine="sqlite").replace('log = "other"', 'undo = "other"')


def test_a_placement_that_the_engine_cannot_honour_is_skipped_with_its_reason(
    own: Path, tmp_path: Path
) -> None:
    text = with_misplaced_undo(own)
    watcher = Watcher()
    directory = runner.run_study(study.parse_study(text, "tiny.toml"), tmp_path / "results", watcher, seed=1)
    assert "engine sqlite cannot place the role undo" in watcher.skipped["two"]
    assert {result.placement for result in watcher.results} == {"one"}
    assert read_study_info(directory / runner.STUDY_FILE).skipped == watcher.skipped


def test_a_baseline_that_the_engine_cannot_honour_is_refused(own: Path, tmp_path: Path) -> None:
    text = with_misplaced_undo(own).replace('"one"', '"two"', 1)
    with pytest.raises(TierwiseError, match=r"placements\.two: engine sqlite cannot place the role undo"):
        runner.run_study(study.parse_study(text, "tiny.toml"), tmp_path / "results", Watcher(), seed=1)


def test_a_killed_study_resumes(tiny: study.Study, own: Path, tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(STUDY.format(path=own, engine="postgres"), "utf-8")
    out = tmp_path / "results"
    command = [
        sys.executable,
        "-m",
        "tierwise",
        "study",
        "run",
        str(file),
        "--output",
        str(out),
        "--seed",
        "3",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    records = out / "tiny" / runner.LATEST / runner.RESULTS_FILE
    deadline = time.monotonic() + 300
    # The file is there before its first line is.
    while not (records.exists() and "\n" in records.read_text("utf-8")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = records.read_text("utf-8")
    clean.clean()
    assert not ledger.entries()
    assert not list(own.iterdir())

    watcher = Watcher()
    directory = runner.run_study(tiny, out, watcher, seed=3)
    assert watcher.finished_before == len(before.splitlines()) >= 1
    assert len(watcher.results) == 4 - watcher.finished_before
    assert (directory / runner.RESULTS_FILE).read_text("utf-8").startswith(before)
    assert len(runner.finished_runs_in(directory)) == 4


def test_a_changed_study_does_not_resume(small: study.Study, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    runner.run_study(small.model_copy(update={"repeats": 1}), out, Watcher(), seed=5)
    assert runner.find_unfinished_results(small, out, None)
    assert runner.find_unfinished_results(small, out, 6) is None
    assert runner.find_unfinished_results(small.model_copy(update={"clients": 3}), out, None) is None
    assert runner.find_unfinished_results(small.model_copy(update={"repeats": 1}), out, None) is None


def test_a_study_whose_files_changed_does_not_resume(own: Path, tmp_path: Path) -> None:
    shipped = DATA / "devices" / "ram.toml"
    profile, workload = tmp_path / "own.toml", tmp_path / "workload"
    profile.write_text(shipped.read_text("utf-8"), "utf-8")
    shutil.copytree(DATA / "workloads" / "single_commit", workload)
    text = STUDY.format(path=own, engine="sqlite").replace('"single_commit"', f'"{workload}"')
    text = text.replace(f'[devices.other]\npath = "{own}"', f'[devices.other]\nprofile = "{profile}"')
    given = study.parse_study(text, "tiny.toml")
    before = runner.study_fingerprint(given)
    assert runner.study_fingerprint(study.parse_study(text, "tiny.toml")) == before
    seen = {before}
    for file, (old, new) in {
        profile: ("summary = ", 'summary = "x" # '),
        workload / "workload.toml": ("summary = ", 'summary = "x" # '),
        workload / "schema.sql": ("CREATE TABLE", "CREATE  TABLE"),
    }.items():
        file.write_text(file.read_text("utf-8").replace(old, new, 1), "utf-8")
        seen.add(runner.study_fingerprint(given))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("engine", {"version": "3.0"}, r"engine sqlite was 3\.0 in its runs and is 3\."),
        ("machine", {"host": "elsewhere"}, "the machine was elsewhere in its runs"),
        ("machine", {"kernel": "2.6.18"}, r"the kernel was 2\.6\.18 in its runs"),
    ],
)
def test_runs_are_not_added_to_those_of_other_conditions(
    part: str, change: dict[str, str], message: str, small: study.Study, tmp_path: Path
) -> None:
    out, once = tmp_path / "results", small.model_copy(update={"repeats": 1})
    directory = runner.run_study(once, out, Watcher(), seed=5)
    elsewhere = [
        result.changed(**{part: getattr(result, part).changed(**change)})
        for result in runner.finished_runs_in(directory)
    ]
    runner.replace_results(directory / runner.RESULTS_FILE, elsewhere)
    assert runner.run_study(once, out, Watcher(), resume=True) == directory.resolve()
    watcher = Watcher()
    with pytest.raises(TierwiseError, match=message) as refused:
        runner.run_study(small, out, watcher)
    assert "--fresh" in refused.value.fix and not watcher.results


def test_resuming_a_complete_study_runs_nothing(small: study.Study, tmp_path: Path) -> None:
    out, once = tmp_path / "results", small.model_copy(update={"repeats": 1})
    directory = runner.run_study(once, out, Watcher(), seed=5)
    watcher = Watcher()
    assert runner.run_study(once, out, watcher, resume=True) == directory.resolve()
    assert watcher.finished_before == 2 and not watcher.results
    assert not (directory / runner.FAILED_FILE).exists()


def test_runs_that_were_not_recorded_are_not_resumed_with_recording(
    small: study.Study, own: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    runner.run_study(small.model_copy(update={"repeats": 1}), out, Watcher(), seed=5)
    watcher = Watcher()
    with pytest.raises(TierwiseError, match=r"--record: 2 of 2 runs in .* are not recorded in") as refused:
        runner.run_study(small, out, watcher, recordings=RecordingDestination(tmp_path / "recordings"))
    assert "--fresh" in refused.value.fix and not watcher.results
    assert not list(own.iterdir())


def test_a_recorded_study_is_not_resumed_without_recording(
    small: study.Study, own: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    directory = runner.run_study(small.model_copy(update={"repeats": 1}), out, Watcher(), seed=5)
    info = runner.read_study_info(directory / runner.STUDY_FILE)
    runner.write_study_info(directory / runner.STUDY_FILE, info.changed(recorded=True))
    watcher = Watcher()
    with pytest.raises(TierwiseError, match="the runs of this study are recorded") as refused:
        runner.run_study(small, out, watcher)
    assert "--record" in refused.value.fix and not watcher.results


def test_a_directory_in_place_of_the_link_is_named(small: study.Study, own: Path, tmp_path: Path) -> None:
    latest = tmp_path / "results" / small.name / runner.LATEST
    latest.mkdir(parents=True)
    with pytest.raises(TierwiseError, match="latest is no symbolic link"):
        runner.run_study(small, tmp_path / "results", Watcher())
    assert list(latest.parent.iterdir()) == [latest]
