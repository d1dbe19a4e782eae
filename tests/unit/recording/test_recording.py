"""Recordings as Python and DuckDB see them, and what the documentation says of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from support.paths import RECORDINGS, ROOT
from support.recording_factory import COLUMNS, ONE_COMMIT, about, write_recording
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.recording import (
    TABLES,
    Recording,
    RecordingMetadata,
    new_recording_folder,
    redact_recording,
    remove_recording,
)

PAGE = (ROOT / "docs" / "reference" / "recordings.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


def test_a_recording_says_what_it_is_of(tmp_path: Path) -> None:
    about = Recording.open(write_recording(tmp_path / "r"), whole=True).about
    assert (about.engine, about.machine.cores, about.devices[0].roles) == ("postgres", 2, ["log"])


def test_tables_can_be_queried(tmp_path: Path) -> None:
    connection = Recording.open(write_recording(tmp_path / "r")).connect()
    for table in TABLES:
        assert connection.table(table).fetchall() == ONE_COMMIT[table]


@pytest.mark.parametrize("name", ["r*", "r[12]", "r?"])
def test_a_folder_s_name_is_no_pattern(name: str, tmp_path: Path) -> None:
    """The tables of ``r1``, unchecked, were read in place of those of ``r[12]``, or with them."""
    recording = Recording.open(write_recording(tmp_path / name))
    write_recording(tmp_path / "r1", {"threads": ONE_COMMIT["threads"]})
    for table in TABLES:
        assert recording.connect().table(table).fetchall() == ONE_COMMIT[table]


@pytest.mark.parametrize("changed", ["make_timestamp_ns(end_ns)", "end_ns::DECIMAL(18, 0)"])
def test_a_column_of_times_or_decimals_is_refused(changed: str, tmp_path: Path) -> None:
    """Calls that end in a year rather than at a number of ns ended ``recording export`` with a defect."""
    path = write_recording(tmp_path / "r")
    file = str(path / "calls.parquet")
    calls = duckdb.sql(f"SELECT * REPLACE ({changed} AS end_ns) FROM read_parquet('{file}')").materialize()
    calls.write_parquet(file)
    with (
        pytest.raises(TierwiseError, match="column end_ns is of times or decimals"),
        Recording(path, RecordingMetadata.model_validate(about())).tables(),
    ):
        pass


def test_a_sound_recording_has_no_warnings(tmp_path: Path) -> None:
    assert Recording.open(write_recording(tmp_path / "r")).warnings == []


def test_what_a_recording_lacks_is_said(tmp_path: Path) -> None:
    failed = {"name": "parts sum to wall time", "passed": False, "detail": "off by 4 %"}
    losses = {"recorded_events": 99, "lost_events": 1}
    path = write_recording(
        tmp_path / "r", losses=losses, foreign_cpu_share=0.2, checks=[failed], warnings=["mmap was used"]
    )
    assert Recording.open(path).warnings == [
        "mmap was used",
        "the kernel dropped 1 of 100 events (1.0\u00a0%) while recording",
        "other programs used 20\u00a0% of the processors while recording",
        "parts sum to wall time: off by 4 %",
    ]


@pytest.mark.parametrize("changes", [{"version": 2}, {"format": "other"}, {"machine": None}], ids=str)
def test_another_format_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    path = write_recording(tmp_path / "r", **changes)
    with pytest.raises(TierwiseError, match=r"about\.json"):
        Recording.open(path)


@pytest.mark.parametrize("started", ["banana", "2026-11-21T12:00:00", "0001-01-01T00:00:00+23:00"])
def test_a_start_that_is_no_time_is_refused(tmp_path: Path, started: str) -> None:
    path = write_recording(tmp_path / "r", started_at=started)
    with pytest.raises(TierwiseError, match=r"about\.json: started_at: '.*' is no time with its offset"):
        Recording.open(path)


def test_no_recording_is_made_within_another(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r")
    (tmp_path / "link").symlink_to(path)
    for inner in (path / "inner", tmp_path / "link" / "a" / "b"):
        with pytest.raises(TierwiseError, match=r"lies in .*/r, which is a recording"):
            redact_recording(path, inner)
    assert not any(file.is_dir() for file in path.iterdir())


@pytest.mark.parametrize("table", TABLES)
def test_a_truncated_table_is_refused_by_name(tmp_path: Path, table: str) -> None:
    file = write_recording(tmp_path / "r") / f"{table}.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(TierwiseError, match=rf"{table}\.parquet: has \d+ bytes"):
        Recording.open(tmp_path / "r", whole=True)
    shown = CliRunner().invoke(app, ["recording", "show", str(tmp_path / "r")])
    assert isinstance(shown.exception, TierwiseError) and f"{table}.parquet: has" in str(shown.exception)


def test_rows_that_refer_to_nothing_are_refused(tmp_path: Path) -> None:
    rows = ONE_COMMIT | {"blocks": [(3, *ONE_COMMIT["blocks"][0][1:])]}
    with pytest.raises(TierwiseError, match="blocks: row 0: device is 3, and there are 1"):
        Recording.open(write_recording(tmp_path / "r", rows), whole=True)


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_queries_of_the_page_run(tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_recording(tmp_path / "r")
    monkeypatch.chdir(path)
    connection = Recording.open(path).connect()
    assert connection.sql(query).fetchall()


def test_the_page_names_every_column() -> None:
    for columns in COLUMNS.values():
        for column in columns.split(", "):
            assert column.split()[0] in PAGE


def test_a_list_leaves_out_what_it_cannot_open(tmp_path: Path) -> None:
    write_recording(tmp_path / "good")
    bad = write_recording(tmp_path / "bad") / "about.json"
    bad.write_text("{}")
    damaged = write_recording(tmp_path / "damaged") / "states.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    listed = CliRunner().invoke(app, ["recording", "list", str(tmp_path)])
    assert listed.exit_code == 0
    assert "good" in listed.stdout and "bad" not in listed.stdout
    assert f"warning: left out: {bad}" in listed.stderr
    assert "damaged" not in listed.stdout and f"warning: left out: {damaged}" in listed.stderr
    itself = CliRunner().invoke(app, ["recording", "list", str(tmp_path / "good")]).exception
    assert isinstance(itself, TierwiseError) and f"{tmp_path / 'good'} is a recording" in str(itself)
    (tmp_path / "empty").mkdir()
    empty = CliRunner().invoke(app, ["recording", "list", str(tmp_path / "empty")])
    assert empty.stdout.startswith("No recording directly in ")
    remove_recording(tmp_path / "good")
    for folder in (tmp_path, tmp_path / "none"):
        assert isinstance(
            CliRunner().invoke(app, ["recording", "list", str(folder)]).exception, TierwiseError
        )


@pytest.mark.parametrize(
    "command",
    [
        ["predict"],
        ["profile", "--by", "file"],
        ["advise", "--by", "table", "--devices", "nvme-dc"],
        ["recording", "show"],
    ],
    ids=" ".join,
)
def test_a_day_in_place_of_a_recording_is_named(command: list[str], tmp_path: Path) -> None:
    write_recording(tmp_path / "a")
    error = CliRunner().invoke(app, [*command, str(tmp_path)]).exception
    assert isinstance(error, TierwiseError)
    assert (error.message, error.fix) == (
        f"{tmp_path}: a day holds several recordings",
        "name one of its folders",
    )


def test_what_a_killed_recorder_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    left = write_recording(tmp_path / "left")
    (left / "about.json").unlink()
    other = left / "notes.txt"
    other.write_text("mine")
    with pytest.raises(TierwiseError, match=r"notes\.txt is no recording's file"):
        remove_recording(left)
    other.unlink()
    (left / "calls.parquet").rename(tmp_path / "mine")
    (left / "calls.parquet").symlink_to(tmp_path / "mine")
    with pytest.raises(TierwiseError, match="is no recording"):
        remove_recording(left)
    (left / "calls.parquet").unlink()
    remove_recording(left)
    assert not left.exists()


def test_what_others_have_put_into_a_recording_is_not_removed(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "made")
    (made / "pages").mkdir()
    with pytest.raises(TierwiseError, match="pages is no recording's file"):
        remove_recording(made)
    (made / "pages").rmdir()
    (made / "buffer.json").touch()
    remove_recording(made)
    assert not made.exists()


def test_an_unfinished_recording_is_removed_without_what_others_have_put_there(tmp_path: Path) -> None:
    for name, put in (("alone", False), ("shared", True)):
        with pytest.raises(KeyboardInterrupt), new_recording_folder(tmp_path / name):
            for file in ("calls.parquet", "calls.parquet.part", "about.json.part", "observation.json"):
                (tmp_path / name / file).touch()
            if put:
                (tmp_path / name / "pages").mkdir()
                (tmp_path / name / "pages" / "mine").touch()
            raise KeyboardInterrupt
    assert [path.relative_to(tmp_path) for path in sorted(tmp_path.rglob("*"))] == [
        Path("shared"),
        Path("shared/pages"),
        Path("shared/pages/mine"),
    ]


def test_a_folder_in_which_another_recording_is_written_is_refused_and_stays(tmp_path: Path) -> None:
    """The second recorder had removed the files of the first, and both failed."""
    with new_recording_folder(tmp_path / "r"):
        with (
            pytest.raises(TierwiseError, match="another tierwise writes"),
            new_recording_folder(tmp_path / "r"),
        ):
            raise AssertionError("two write to one folder")
        assert (tmp_path / "r").is_dir()
        (tmp_path / "r" / "calls.parquet").touch()
        with pytest.raises(TierwiseError, match="is not empty"), new_recording_folder(tmp_path / "r"):
            raise AssertionError("two write to one folder")
    assert (tmp_path / "r" / "calls.parquet").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("duration_s", 1e300),
        ("machine.core_limit", -1),
        ("machine.core_limit", 1e300),
        ("machine.memory_bytes", 2**63),
        ("devices.1.path_us", -1),
        ("devices.1.path_us", 1e300),
        ("devices.1.path_added_us", [[1, 1e300]]),
        ("devices.1.sectors", 2**63),
        ("devices.1.chain", [{"depth": 0, "kind": "ext4", "sectors": 2**63}]),
        ("data_directory_bytes", 2**63),
        ("role_bytes", {"log": 2**63}),
        ("foreign_programs", [{"program": "cc", "pids": [1], "cpu_share": 1e300}]),
        ("relations", [{"path": "base/5/1", "name": "public.a", "kind": "blob"}]),
    ],
)
def test_a_field_beyond_its_range_is_refused_by_name(field: str, value: object, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(RECORDINGS / "order-entry", copy)
    about: Any = json.loads((copy / "about.json").read_text())
    *above, name = field.split(".")
    inner = about
    for part in above:
        inner = inner[int(part) if part.isdigit() else part]
    inner[name] = value
    (copy / "about.json").write_text(json.dumps(about))
    with pytest.raises(TierwiseError) as refused:
        Recording.open(copy)
    assert refused.value.message.startswith(f"{copy / 'about.json'}: {field}")
    assert refused.value.fix.startswith("copy the recording again")


def test_a_redaction_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="is no folder"):
        redact_recording(tmp_path / "none", tmp_path / "out")
    assert not list(tmp_path.iterdir())
