"""Workflows and scripts as their checkers see them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from yaml.safe_load(path.read_text("utf-8"))["jobs"].items()


@pytest.mark.skipif(not shutil.which("go"), reason="actionlint is compiled by go")
def test_actionlint_has_nothing_against_the_workflows() -> None:
    steps = dict(jobs(ROOT / ".github" / "workflows" / "tests.yml"))["workflows"]["steps"]
    (command,) = (step["run"] for step in steps if "run" in step)
    done = subprocess.run(
        [*shlex.split(command), *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs Debian's package shellcheck")
def test_shellcheck_has_nothing_against_the_scripts() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.splitlines()]
    scripts = [file for file in files if file.suffix == ".sh" or file == ROOT / ".ci" / "run"]
    done = subprocess.run(
        ["shellcheck", "--external-sources", *scripts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert scripts and done.returncode == 0, done.stdout + done.stderr
