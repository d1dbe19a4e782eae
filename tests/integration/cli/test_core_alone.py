"""What records, predicts and advises loads nothing of ``tierwise.lab``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import ROOT

EXAMPLE = "examples/recordings/keyed-update"
_LAB = "print('lab:', *sorted(name for name in sys.modules if name.startswith('tierwise.lab')))"
_COMMAND = f"""
import sys
from tierwise import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
finally:
    {_LAB}
"""
_IMPORTS = f"""
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
{_LAB}
"""
PACKAGE = ROOT / "python" / "tierwise"
CORE = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "lab"]


def last_line(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["advise", "--help"],
        ["advise", EXAMPLE, "--devices", "nvme-dc"],
        ["predict", EXAMPLE, "--place", "log=nvme-dc"],
        ["profile", EXAMPLE],
        ["record", "--help"],
        ["serve", "--help"],
        ["fleet", "--help"],
    ],
    ids=" ".join,
)
def test_a_command_of_the_core(arguments: list[str]) -> None:
    assert last_line(_COMMAND, *arguments) == "lab:"


def test_a_command_of_the_lab() -> None:
    assert "tierwise.lab.studies.study" in last_line(_COMMAND, "study", "list").split()


def test_every_module_of_the_core() -> None:
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in CORE]
    assert last_line(_IMPORTS, *(name.removesuffix(".__init__") for name in names)) == "lab:"
