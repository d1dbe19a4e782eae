#!/usr/bin/env python3
"""Prints the release notes of a tag from CHANGELOG.md: ``python3 tools/release_notes.py v0.1.0``.

Refuses a tag that is not the version in Cargo.toml, from which the wheels and ``tierwise --version`` have
theirs, and a version that the changelog does not date. Python's standard library is enough.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(
    r"^## (?P<version>\S+) \((?P<when>[^)]*)\)$(?P<entries>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def notes(tag: str, changelog: str, version: str) -> str:
    """Entries of the tag's version.

    Args:
        tag: name of the tag, ``v`` and the version.
        changelog: text whose sections begin with ``## VERSION (YYYY-MM-DD)``.
        version: of the workspace in Cargo.toml.

    Raises:
        SystemExit: if there is nothing to release under that tag; its text says what to do.
    """
    if tag != f"v{version}":
        raise SystemExit(f"tag {tag}: Cargo.toml has version {version}; change it, or tag v{version}")
    for section in _SECTION.finditer(changelog):
        if section["version"] != version:
            continue
        if not _DAY.fullmatch(section["when"]):
            raise SystemExit(
                f"CHANGELOG.md: {version} is '{section['when']}': write the day of the release, YYYY-MM-DD"
            )
        return section["entries"].strip() + "\n"
    raise SystemExit(f"CHANGELOG.md has no section of {version}: write '## {version} (YYYY-MM-DD)'")


def main() -> None:
    """Print the notes of the tag that the command line names."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: tools/release_notes.py TAG")
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    sys.stdout.write(notes(sys.argv[1], changelog, cargo["workspace"]["package"]["version"]))


if __name__ == "__main__":
    main()
