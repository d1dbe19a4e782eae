"""Tests of this folder record for real, with a ledger of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise import _core


@pytest.fixture(autouse=True)
def possible(run_dir: Path) -> None:
    """Skip where the kernel cannot be traced."""
    if (reason := _core.recording_impossible()) is not None:
        pytest.skip(f"nothing can be recorded here: {reason}")
