"""The ledger's lock: nobody else can hold it, and who holds it too long is named."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.other_users import needs_root, run
from tierwise.host.clean import clean
from tierwise.model.errors import TierwiseError

pytestmark = needs_root
_HOLD = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1000)
"""


@contextmanager
def holder(file: Path) -> Iterator[int]:
    """A process of root's that holds the lock of a file."""
    command = [sys.executable, "-c", _HOLD, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process.pid
        finally:
            process.kill()


def test_another_user_cannot_take_the_lock(run_dir: Path) -> None:
    clean()
    assert stat.S_IMODE((run_dir / "lock").stat().st_mode) == 0o600
    status, output = run(_HOLD, run_dir / "lock")
    assert status != 0 and "PermissionError" in output


def test_a_lock_that_a_former_version_left_open_to_others_is_closed(run_dir: Path) -> None:
    (run_dir / "lock").touch(0o644)
    clean()
    assert stat.S_IMODE((run_dir / "lock").stat().st_mode) == 0o600


def test_whoever_holds_the_lock_too_long_is_named(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.model.file_lock.WAITS_S", 0.3)
    clean()
    with holder(run_dir / "lock") as pid:
        with pytest.raises(TierwiseError, match=rf"process {pid} \(.*python.*flock") as caught:
            clean()
        assert str(run_dir / "lock") in str(caught.value) and "\n" not in str(caught.value)
    assert clean() == []


def test_the_command_continues_without_the_lock(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tierwise.host.clean import clean_before_operation

    monkeypatch.setattr("tierwise.model.file_lock.WAITS_S", 0.3)
    sentences: list[str] = []
    (run_dir / "lock").touch()
    with holder(run_dir / "lock") as pid:
        assert clean_before_operation(sentences.append) == []
    assert len(sentences) == 1 and f"process {pid}" in sentences[0]
