"""The answer that the README prints is what its command says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

from support.paths import ROOT

_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_answer_in_the_readme_is_what_its_command_says() -> None:
    block = next(block for block in _BLOCK.findall((ROOT / "README.md").read_text("utf-8")) if "$ " in block)
    command, *printed = block.splitlines()
    argv = [sys.executable, "-m", "tierwise", *shlex.split(command.removeprefix("$ tierwise "))]
    answer = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    shown = answer.replace("\u00a0", " ").replace("\n", " ")
    for passage in " ".join(printed).split(" … "):
        assert passage in shown, answer[:400]
