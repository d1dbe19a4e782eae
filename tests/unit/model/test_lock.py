"""A lock of a folder that a run adds rows to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.model.errors import TierwiseError
from tierwise.model.file_lock import held


def test_a_lock_that_is_busy_is_refused_at_once(tmp_path: Path) -> None:
    file, busy = tmp_path / "lock", TierwiseError("another run is here", "wait for it")
    with held(file, busy=busy), pytest.raises(TierwiseError, match="another run"), held(file, busy=busy):
        pass
    with held(file, busy=busy):
        assert file.stat().st_mode & 0o077 == 0
