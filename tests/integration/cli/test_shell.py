"""The command line as a shell runs it: completion, status and the one line of an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("tierwise")


def test_words_are_completed() -> None:
    asked = {"_TIERWISE_COMPLETE": "complete_bash", "COMP_WORDS": "tierwise device ", "COMP_CWORD": "2"}
    completed = subprocess.run(
        [PROGRAM], capture_output=True, text=True, check=False, env={**os.environ, **asked}
    )
    assert completed.stdout.split() == ["list", "show", "simulate", "import", "probe"]


def test_a_locale_without_dashes_gets_escapes() -> None:
    command = [sys.executable, "-m", "tierwise", "device", "list"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "\\u2013" in done.stdout


@pytest.mark.parametrize("program", [[PROGRAM], [sys.executable, "-m", "tierwise"]], ids=["script", "module"])
def test_an_error_is_one_line_and_status_2(program: list[str | Path]) -> None:
    done = subprocess.run(
        [*program, "device", "show", "nvme-cd"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nvme-dc" in done.stderr
