"""SQLite's settings, files and version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.lab import engines
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.sqlite.settings import pragmas
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role


def test_each_connection_waits_before_it_does_anything_else() -> None:
    ordered = [name for name, _ in pragmas({"auto_vacuum": "none", "page_size": "512"}, ResourceLimits())]
    assert ordered[:3] == ["busy_timeout", "page_size", "auto_vacuum"]


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("cache_sise", "100", "did you mean cache_size"),
        ("journal_mode", "off", "one of wal, delete, truncate, persist"),
        ("synchronous", "4", "one of off, normal, full, extra"),
        ("page_size", "5000", "a power of two"),
        ("page_size", "256", "a power of two"),
        ("mmap_size", "1000000", "cannot be counted"),
        ("cache_size", "9" * 5000, "a whole number from"),
        ("cache_size", "1; DROP TABLE item", "a whole number"),
        ("threads", "-1", "a whole number from 0 to 8"),
    ],
)
def test_a_bad_setting_is_refused_with_what_may_be_given(name: str, value: str, fix: str) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name} ") as caught:
        engines.create_engine("sqlite", {name: value})
    assert fix in caught.value.fix
    assert "\n" not in str(caught.value)


def test_the_role_of_a_file_is_in_its_name() -> None:
    engine = engines.create_engine("sqlite")
    roles = {
        "tierwise.db": Role.DATA,
        "tierwise.wal": Role.LOG,
        "tierwise.journal": Role.DOUBLEWRITE,
        "tierwise.shm": Role.SYSTEM,
        "tierwise-12-0.temp": Role.TEMP,
        "tierwise-12-0.temp (deleted)": Role.TEMP,
        "tierwise.log": None,
    }
    assert {name: engine.role_of(Path("/anywhere") / name) for name in roles} == roles


def test_the_version_is_that_of_the_library() -> None:
    assert engines.create_engine("sqlite").version().startswith("3.")
