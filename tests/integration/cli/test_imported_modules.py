"""The drawings in ARCHITECTURE.md of what a command imports are what it imports."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from support.paths import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
COMMANDS = {
    "tierwise advise": ["advise", "examples/recordings/keyed-update", "--devices", "nvme-dc"],
    "tierwise study run": ["study", "run", "--help"],
}
_LISTED = """
import sys
from tierwise import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print("modules:", *sorted(name for name in sys.modules if name.startswith("tierwise.")))
"""


def imported(arguments: list[str]) -> Counter[str]:
    """Modules of each package that a command has imported when it ends; in the lab, of each folder there."""
    command = [sys.executable, "-c", _LISTED, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    parts = [name.split(".")[1:] for name in done.stdout.splitlines()[-1].split()[1:]]
    return Counter(".".join(part[:2]) if part[0] == "lab" and part[1:] else part[0] for part in parts)


def drawn(command: str) -> dict[str, int]:
    """The numbers in the drawing below a command's name."""
    drawing = re.search(rf"^ {command} .*\n((?: +[^ ].*\n)+)", PAGE, re.M)
    assert drawing is not None, f"ARCHITECTURE.md has no drawing of {command}"
    return {name: int(count) for name, count in re.findall(r"([a-z_.]+) (\d+)", drawing[1])}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_drawing_of_a_command_is_what_it_imports(command: str) -> None:
    assert drawn(command) == dict(imported(COMMANDS[command]))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_sum_above_a_drawing_is_right(command: str) -> None:
    total = re.search(rf"^ {command} +(\d+) modules", PAGE, re.M)
    assert total is not None and int(total[1]) == sum(drawn(command).values())
