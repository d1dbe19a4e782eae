"""Release notes, workflows, images and hooks: what they name is there."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = """# Changelog

## 0.3.0 (unreleased)

- Not yet.

## 0.2.0 (2026-02-01)

- **New**: the second.

## 0.1.0 (2026-01-01)

- The first.
"""
ELSEWHERE = {"docker", "gh", "go"}
"""Programs of the machines that run workflows."""


def notes(tag: str, version: str, changelog: str = CHANGELOG) -> str:
    """Output of the script beside a project of that version, or the text with which it ends."""
    script = runpy.run_path(str(ROOT / "tools" / "release_notes.py"))
    try:
        return str(script["notes"](tag, changelog, version))
    except SystemExit as refused:
        return f"refused: {refused}\n"


@pytest.mark.parametrize(
    ("version", "entries"), [("0.2.0", "- **New**: the second.\n"), ("0.1.0", "- The first.\n")]
)
def test_the_notes_are_the_entries_of_the_version(version: str, entries: str) -> None:
    assert notes(f"v{version}", version) == entries


@pytest.mark.parametrize(
    ("tag", "version", "expected"),
    [
        ("v0.2.0", "0.1.0", "tag v0.2.0: Cargo.toml has version 0.1.0; change it, or tag v0.1.0\n"),
        (
            "v0.3.0",
            "0.3.0",
            "CHANGELOG.md: 0.3.0 is 'unreleased': write the day of the release, YYYY-MM-DD\n",
        ),
        (
            "v0.4.0",
            "0.4.0",
            "CHANGELOG.md has no section of 0.4.0: write '## 0.4.0 (YYYY-MM-DD)'\n",
        ),
    ],
)
def test_a_tag_without_notes_is_refused(tag: str, version: str, expected: str) -> None:
    assert notes(tag, version) == f"refused: {expected}"


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from yaml.safe_load(path.read_text("utf-8"))["jobs"].items()


def commands(script: str) -> Iterator[list[str]]:
    """Words of each command of a ``run:``."""
    for line in script.splitlines():
        yield shlex.split(line.partition(" > ")[0])


def is_there(words: list[str]) -> bool:
    """Whether a command is a target of the Makefile, a program of this repository or of its environment."""
    program, *arguments = words
    if program == "make":
        known = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return set(arguments) <= set(known)
    if program.startswith(".venv/bin/"):
        return Path(sys.executable).with_name(Path(program).name).exists()
    path = ROOT / program
    return program in ELSEWHERE or (path.is_file() and path.stat().st_mode & 0o111 != 0)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_of_a_workflow_is_a_command_of_this_repository(path: Path) -> None:
    ran = [
        words
        for _, job in jobs(path)
        for step in job["steps"]
        if "run" in step
        for words in commands(step["run"])
    ]
    assert ran or path.stem == "docs"
    assert not [words for words in ran if not is_there(words)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_no_secret_and_few_rights(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "secrets." not in text and "password" not in re.sub(r"#.*", "", text)
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    granted = {name for name, job in jobs(path) if "permissions" in job}
    assert granted == {"wheels": {"release"}, "docs": {"publish"}}.get(path.stem, set())


def test_images_and_roots_share_their_steps() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    images = re.findall(r" AS (\w+)\nRUN \S+ /source/compat/image\.sh (\w+) /source/dist$", dockerfile, re.M)
    assert images == [("predict", "predict"), ("lab", "lab")]
    assert "\nUSER dba\n" in dockerfile.partition(" AS lab")[0]
    sent = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert sent == ["*", "!compat/image.sh", "!dist/*.whl"]


def test_hooks_and_the_container_of_developers_name_what_is_there() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    entries = [hook["entry"] for repo in hooks for hook in repo["hooks"]]
    assert len(entries) == 3
    assert all(is_there(shlex.split(entry)) for entry in entries if not entry.startswith("cargo "))
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert all(is_there(shlex.split(word)) for word in container["postCreateCommand"].split(" && "))


def test_issue_templates_and_the_citation_can_be_read() -> None:
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert {path.stem for path in templates} == {"bug", "config", "device", "prediction"}
    for path in templates:
        content = yaml.safe_load(path.read_text("utf-8"))
        if path.stem != "config":
            fields = [field["id"] for field in content["body"] if field["type"] != "markdown"]
            assert content["name"] and content["description"] and len(fields) == len(set(fields)) > 1
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["title"] == "tierwise" and citation["license"] == "Apache-2.0" and citation["authors"]
