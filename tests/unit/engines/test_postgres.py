"""PostgreSQL's programs and logs as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.lab.engines.postgres.binaries import postgres_error, system_postgres


def test_the_newest_system_server_is_taken(tmp_path: Path) -> None:
    for version in ("9.6", "15", "8"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "postgres").touch()
    assert system_postgres(tmp_path).bin == tmp_path / "15" / "bin"


@pytest.mark.parametrize(
    ("log", "message", "fix"),
    [
        (
            'x FATAL:  unrecognized configuration parameter "io_method"\n',
            "setting io_method is unknown to this server",
            "use a version that has it",
        ),
        (
            'x FATAL:  invalid value for parameter "work_mem": "x"\nHINT: no',
            "setting work_mem",
            "choose a value",
        ),
        (
            "x FATAL:  could not map anonymous shared memory: Cannot allocate memory\n",
            "could not map",
            "less memory",
        ),
        (
            'LOG: x\nx FATAL:  lock file "/a/.s.PGSQL.1.lock" already exists\nHINT: y\n',
            "already exists",
            "port",
        ),
        ("initdb: error: could not write file: No space left on device\n", "No space", "more space"),
        ("something odd\n", "something odd", "mend"),
        ("", "no message", "mend"),
    ],
)
def test_logs_become_one_line(log: str, message: str, fix: str) -> None:
    error = postgres_error("engine postgres cannot start", log)
    assert message in error.message
    assert fix in error.fix
    assert "\n" not in str(error)
