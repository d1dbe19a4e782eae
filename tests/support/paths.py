"""Where things of the repository lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
RECORDINGS = ROOT / "examples" / "recordings"
GOLDEN = ROOT.parent / "shared" / "golden" / "hdd"
"""Measured drives, which are not part of the repository."""
