"""Processes, and the cleaning up after dead owners."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tierwise.host import ledger, processes
from tierwise.host.clean import clean
from tierwise.host.users import ServerUser


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def run_and_kill(script: str) -> None:
    """Run a script that prints a line when it is done, and kill it then."""
    command = [sys.executable, "-c", textwrap.dedent(script) + "\nprint('done', flush=True); time.sleep(100)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "done\n"
        process.kill()


def is_running(pid: int) -> bool:
    return ledger.ProcessIdentity.of(pid) is not None


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen(["true"]) as process:
        deadline = time.monotonic() + 60
        while ledger.ProcessIdentity.of(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ledger.ProcessIdentity.of(process.pid) is None


def test_what_a_live_owner_has_is_left_alone() -> None:
    process = processes.start("sleeper", ["sleep", "100"])
    with ledger.make_directory("kept") as path:
        assert clean() == []
        assert path.is_dir() and process.running
    process.kill()
    assert not path.exists() and ledger.entries() == []


def test_a_dead_owners_processes_and_directories_go(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run_and_kill(f"""
        import time
        from pathlib import Path
        from tierwise.host import ledger, processes
        path = ledger.make_directory("left").path
        (path / "full").write_text("x")
        script = "setsid sh -c 'echo $$ >> {pids}; sleep 100' & echo $$ >> {pids}; sleep 100"
        processes.start("family", ["sh", "-c", script])
        while not Path("{pids}").exists() or len(Path("{pids}").read_text().split()) < 2:
            time.sleep(0.01)
    """)
    family = [int(pid) for pid in pids.read_text().split()]
    [directory] = [Path(entry.facts["path"]) for entry in ledger.entries("directory")]
    assert directory.exists() and all(map(is_running, family))
    assert sorted(line.split()[0] for line in clean()) == ["directory", "process"]
    assert not directory.exists() and not any(map(is_running, family))
    assert clean() == [] and ledger.entries() == []


def test_an_entry_that_was_not_finished_goes(own_ledger: Path) -> None:
    script = """
        import os, signal
        from tierwise.host import ledger
        os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        ledger.make_directory("left")
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    [left] = own_ledger.iterdir()
    live = left.with_name(left.name.replace(left.suffix, f".{os.getpid()}-00000000"))
    live.touch()
    assert clean() == []
    assert {path.name for path in own_ledger.iterdir()} == {live.name, "lock"}


def test_a_process_that_left_its_session_and_environment_is_still_found() -> None:
    process = processes.start("runaway", ["setsid", "env", "-i", "sleep", "100"])
    time.sleep(0.2)
    process.kill()
    assert not process.running and ledger.entries() == []


def test_many_cleaners_at_once_undo_everything_once(own_ledger: Path) -> None:
    run_and_kill(
        "import time; from tierwise.host import ledger; [ledger.make_directory('d') for _ in range(20)]"
    )
    script = "import json; from tierwise.host.clean import clean; print(json.dumps(clean()))"
    cleaners = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(4)]
    lines = [line for cleaner in cleaners for line in json.loads(cleaner.communicate()[0])]
    assert len(lines) == len(set(lines)) == 20
    assert not list(own_ledger.glob("*.json"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_a_process_runs_as_the_user_it_is_given_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.start("who", ["id", "-un"], user=ServerUser("nobody", 65534, 65534), log=log)
    assert process.wait(60) == 0
    assert log.read_text() == "nobody\n" and ledger.entries() == []


def test_a_signal_reaches_the_process() -> None:
    process = processes.start("sleeper", ["sleep", "100"])
    process.signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
