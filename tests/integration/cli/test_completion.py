"""Completion of the command line in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def tierwise(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tierwise", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=120
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_there(shell: str) -> None:
    script = tierwise("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert script.returncode == 0 and "COMPLETE" in script.stdout, script
    completed = subprocess.run(
        [Path(sys.executable).with_name("tierwise")],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_TIERWISE_COMPLETE": "complete_bash",
            "COMP_WORDS": "tierwise device ",
            "COMP_CWORD": "2",
        },
    )
    assert completed.stdout.split() == ["list", "show", "simulate", "import", "probe"]
