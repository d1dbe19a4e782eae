"""The steps that an advice gives, read by a shell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tierwise.model.placement import Role
from tierwise.predict.inseparable_roles import MOVES
from tierwise.report.move_steps import move_guide


@pytest.mark.parametrize("file", sorted(MOVES.glob("*.toml")), ids=lambda file: file.stem)
def test_steps_are_shell_that_parses_and_quotes_its_paths(file: Path) -> None:
    """Every role either has steps and a way back, or a reason why it has none."""
    instructions = move_guide(file.stem, {role: f"new {role}" for role in Role})
    assert instructions.steps and instructions.sources
    assert len(instructions.steps) + len(instructions.without) == len(Role)
    for step in instructions.steps:
        for lines in (step.there, step.back):
            text = f"{instructions.variables}\n{lines}\n"
            if not lines.startswith(("SET", "RESET")):
                parsed = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
                assert parsed.returncode == 0, (step.role, parsed.stderr)
                assert not re.search(r"(?<![\"'{$\w/])\$\w+", re.sub(r"\"[^\"]*\"|#.*", "", lines)), step.role
