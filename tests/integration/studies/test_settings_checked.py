"""Settings that an engine refuses: said before anything is made, by a dry run as by a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.engine_cases.mariadb import CASES
from tierwise.cli import app

REFUSED = {
    "postgres io_method": ("postgres", "io_method=io_uring", "Available values: sync, worker"),
    "postgres max_wal_size": ("postgres", "max_wal_size=-5", "outside the valid range"),
    "mariadb": ("mariadb", "innodb_flush_method=fast", "setting value 'fast'"),
    "sqlite": ("sqlite", "synchronous=maybe", "give one of off, normal, full, extra"),
    "rocksdb": ("rocksdb", "write_buffer_size=x", "Error parsing write_buffer_size"),
    "duckdb": ("duckdb", "threads=none", "Could not convert string 'none'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_value_is_refused_with_the_engines_own_words(case: str, tmp_path: Path) -> None:
    engine, setting, expected = REFUSED[case]
    if engine == "mariadb" and (reason := CASES[0].missing()):
        pytest.skip(reason)
    study = {"duckdb": "dss-queries"}.get(engine, "crud")
    out = tmp_path / "results"
    asked = ["study", "run", study, "--engine", engine, "--set", f"settings.{engine}.{setting}"]
    for more in (["--dry-run"], ["--quick", "--own-storage", str(tmp_path), "--output", str(out)]):
        ended = CliRunner().invoke(app, [*asked, *more])
        printed = " ".join(str(ended.exception or ended.output).split())
        assert expected in printed and setting.partition("=")[0] in printed, printed
        assert not out.exists()
