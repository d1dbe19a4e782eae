"""What a user gets wrong: one line that names it and the fix, status 2, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import Finished, tierwise

pytestmark = pytest.mark.usefixtures("run_dir")

STUDY = """
name = "bad"
question = "?"
engines = ["{engine}"]
workload = "{workload}"
clients = 1
transactions = 1
warmup_transactions = 0
repeats = 1
baseline = "a"
[devices.d]
path = "{path}"
[placements.a]
default = "d"
[settings.postgres]
{setting}
"""


def assert_refused(done: Finished, *named: str) -> None:
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, done
    assert len(lines) == 1, done.stderr
    for text in named:
        assert text in lines[0]


def write_study(own: Path, **changes: str) -> Path:
    fields = {"engine": "postgres", "workload": "single_commit", "path": str(own), "setting": "", **changes}
    file = own.parent / "bad.toml"
    file.write_text(STUDY.format(**fields), "utf-8")
    return file


def run_study(own: Path, **changes: str) -> Finished:
    return tierwise("study", "run", write_study(own, **changes), "--output", own.parent / "results")


def test_unknown_study() -> None:
    assert_refused(tierwise("study", "run", "redo-placment"), "redo-placment", "redo-placement")


def test_unknown_engine(own: Path) -> None:
    assert_refused(run_study(own, engine="postgras"), "postgras", "did you mean postgres?")


def test_unknown_workload(own: Path) -> None:
    assert_refused(run_study(own, workload="order_entri"), "order_entri", "order_entry")


def test_unknown_profile_of_a_study(own: Path) -> None:
    file = write_study(own)
    file.write_text(file.read_text("utf-8").replace(f'path = "{own}"', 'profile = "hdd-7k3"'), "utf-8")
    assert_refused(tierwise("study", "run", file, "--output", own.parent / "results"), "hdd-7k3", "hdd-7k2")


def test_unknown_placement_and_role(own: Path) -> None:
    file = write_study(own)
    good = file.read_text("utf-8")
    file.write_text(good.replace('baseline = "a"', 'baseline = "b"'), "utf-8")
    assert_refused(tierwise("study", "run", file), "bad.toml", "baseline", "'b'")
    file.write_text(good.replace('default = "d"', 'default = "d"\nlogs = "d"'), "utf-8")
    assert_refused(tierwise("study", "run", file), "bad.toml", "logs")


def test_directory_that_is_not_there(own: Path) -> None:
    assert_refused(run_study(own, path=f"{own}/none"), "devices.d.path", f"{own}/none")


def test_database_that_will_not_start(own: Path) -> None:
    assert_refused(run_study(own, setting='shared_buffers = "900000GB"'), "postgres", "shared_buffers")
    assert not list(own.iterdir())


def test_unknown_setting(own: Path) -> None:
    assert_refused(run_study(own, setting='shared_bufers = "1MB"'), "shared_bufers")
    assert not list(own.iterdir())


def test_results_that_are_not_there(tmp_path: Path) -> None:
    assert_refused(tierwise("report", tmp_path / "none"), "none")


def test_option_out_of_range() -> None:
    done = tierwise("study", "run", "redo-placement", "--repeats", "0")
    assert done.returncode == 2
    assert "--repeats" in done.stderr
    assert "Traceback" not in done.stderr
