"""What a recording keeps of a server's address."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.watched_servers import SECRET, administrator, commit, dsn_of, watched_postgres
from tierwise.capture.record import record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import target_of_process
from tierwise.cli import app
from tierwise.recording import Recording, redact_recording


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of commits, with the counters and names of its server."""
    out = tmp_path_factory.mktemp("counters") / "recording"
    with watched_postgres() as postgres:
        with administrator(postgres) as session:
            session.execute("CREATE EXTENSION pg_buffercache")
        target = target_of_process(postgres.server_pid or 0)
        load = threading.Thread(target=commit, args=(postgres.dsn(), 2000))
        load.start()
        dsn = replace(dsn_of(postgres, "monitor"), buffer_content=True)
        record_running_database(target, out, BurstSchedule(3.0, 0.5, 0.2), lambda _: None, dsn)
        load.join()
    return out


def test_no_password_reaches_a_recording(out: Path) -> None:
    about = Recording.open(out).about
    ended = about.counters["commits"] + about.counters["rollbacks"] - about.counters["logins"]
    assert about.transactions == ended > 0
    assert about.data_directory_bytes is not None
    assert about.data_directory_bytes > 10_000_000
    for file in out.iterdir():
        content = file.read_bytes()
        assert SECRET.encode() not in content
        assert b"watcher" not in content
        assert b"monitor" not in content


def test_tables_have_their_names(out: Path) -> None:
    named = Recording.open(out).about.relations
    assert named, "the watched server has a table"
    table = next(relation for relation in named if relation.kind == "table")
    assert table.name.startswith("public.")
    assert table.size_bytes > 0


def test_what_the_buffer_held_is_in_the_profile_by_file(out: Path, tmp_path: Path) -> None:
    buffer = Recording.open(out).buffer()
    assert buffer is not None
    assert 0 < buffer.used_pages <= buffer.pages
    (part,) = [row for row in Recording.open(out).relations().rows if row.relation.name == "public.part"]
    assert 0 < part.buffered_bytes <= buffer.used_bytes
    asked = ["profile", str(out), "--by", "file", "--no-savings"]
    printed = CliRunner().invoke(app, asked)
    assert printed.exit_code == 0, printed.output
    assert "At the end, the engine's buffer of" in printed.output
    fields = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)
    assert fields["buffer"] == {"size_bytes": buffer.bytes, "used_bytes": buffer.used_bytes}
    assert sum(row["buffered_bytes"] for row in fields["relations"]) <= buffer.used_bytes
    redact_recording(out, tmp_path / "redacted")
    assert Recording.open(tmp_path / "redacted").buffer() is None, "it has names of InnoDB's files"


def test_a_server_that_stops_is_told_and_has_its_size(tmp_path: Path) -> None:
    with watched_postgres() as postgres:
        target = target_of_process(postgres.server_pid or 0)
        stopping = threading.Timer(1.0, postgres.stop)
        stopping.start()
        record_running_database(target, tmp_path / "recording", BurstSchedule(60.0, 0.5, 0.2), lambda _: None)
        stopping.join()
        about = Recording.open(tmp_path / "recording").about
        postgres.start()
    assert about.duration_s < 60.0
    assert any("nothing is recorded from then on" in warning for warning in about.warnings)
    assert (about.data_directory_bytes or 0) > 10_000_000
    assert about.role_bytes


def test_a_server_limited_to_fewer_cores_is_told(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("this machine has one core")
    with watched_postgres() as postgres:
        pid = postgres.server_pid or 0
        os.sched_setaffinity(pid, cores[:1])
        record_running_database(
            target_of_process(pid), tmp_path / "recording", BurstSchedule(2.0, 0.5, 0.2), lambda _: None
        )
    about = Recording.open(tmp_path / "recording").about
    assert about.machine.core_limit == 1 < about.machine.cores == len(cores)
    (told,) = [warning for warning in about.warnings if "by its affinity or control group" in warning]
    assert told.startswith(f"the server may use 1 of the {len(cores)} cores")
