"""A study of devices as a file: its plan, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.study_texts import BENCHMARK, PATTERNS
from tierwise.lab import studies as study
from tierwise.lab.studies.study import plan_runs
from tierwise.model.errors import TierwiseError


def test_order_is_planned_like_any_other(tmp_path: Path) -> None:
    runs = plan_runs(study.parse_study(BENCHMARK, "s.toml"), 1)
    assert {run.run_id for run in runs} == {f"file/{p}/{r}" for p in ("one", "two") for r in (0, 1)}


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('engines = ["file"]', 'engines = ["postgres"]', "engines and patterns"),
        (f"patterns = {PATTERNS}", "", "engines and patterns"),
        ("seconds = 1.5", "transactions = 5", "seconds: patterns run for a time"),
    ],
)
def test_errors_name_file_and_field(old: str, new: str, named: str) -> None:
    with pytest.raises(TierwiseError, match=f"s.toml: .*{named}|s.toml: {named}"):
        study.parse_study(BENCHMARK.replace(old, new), "s.toml")
