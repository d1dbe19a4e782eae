"""What strangers try with files: names, studies, workloads, profiles, entries of the ledger, recordings."""

from __future__ import annotations

import json
import os
import pwd
import re
from pathlib import Path

import duckdb
import pytest

from support.paths import RECORDINGS
from tierwise.device_models import profiles
from tierwise.host import users
from tierwise.host.clean import clean
from tierwise.lab.studies import study
from tierwise.lab.workloads import Workload
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_text
from tierwise.model.names import checked_file_below, path_below
from tierwise.model.output_files import open_output_file
from tierwise.recording import redact_recording, remove_recording

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to be attacked as")
EXAMPLE = RECORDINGS / "keyed-update"


def test_a_log_is_not_opened_through_a_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "log"
    victim.write_text("theirs")
    link.symlink_to(victim)
    with pytest.raises(TierwiseError, match="symbolic link"):
        open_output_file(link, "append")
    assert victim.read_text() == "theirs"


@needs_root
def test_an_account_with_a_login_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pwd.struct_passwd(("tierwise", "x", 1000, 1000, "", "/home/tierwise", "/bin/bash"))
    monkeypatch.setattr(pwd, "getpwnam", lambda _: theirs)
    with pytest.raises(TierwiseError, match="is somebody's"):
        users.server_user()


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", ".hidden", "a\0b", "", "x" * 300])
def test_a_name_leads_nowhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="cannot be the name of a file"):
        path_below(tmp_path, name)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "a\0b", "x" * 5000])
def test_a_file_is_read_from_its_own_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(TierwiseError, match="does not lie in"):
        checked_file_below(folder, name)


STUDY = """
name = "{name}"
question = "?"
engines = ["postgres"]
workload = "order_entry"
transactions = 10
repeats = 1
baseline = "{placement}"
[devices]
own = {{ path = "/tmp" }}
[placements."{placement}"]
default = "own"
"""


@pytest.mark.parametrize(
    ("name", "placement"), [("../../../x", "own"), ("/x", "own"), ("x", "../../victim"), ("x", "/victim")]
)
def test_a_study_with_a_path_for_a_name_is_refused(name: str, placement: str) -> None:
    with pytest.raises(TierwiseError, match=r"study\.toml: (name|placements)"):
        study.parse_study(STUDY.format(name=name, placement=placement), "study.toml")


def test_a_workload_reads_no_files_outside_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "secret.sql").write_text("SELECT 1;")
    (folder / "schema.sql").write_text("-- role: data\nCREATE TABLE t (a integer);\n")
    (folder / "workload.toml").write_text(
        'summary = "x"\n[transactions.t]\nsteps = [{ file = "../secret.sql" }]\n'
    )
    with pytest.raises(TierwiseError, match="does not lie in"):
        Workload.load(str(folder))


def test_a_profile_refers_to_none_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text('kind = "hdd"\n')
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.toml").write_text('like = "../secret"\n')
    with pytest.raises(TierwiseError):
        profiles.load_profile(str(folder / "mine.toml"))


def test_only_a_recording_is_removed_in_place_of_a_new_one(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.mkdir()
    (victim / "file").write_text("theirs")
    link.symlink_to(victim)
    for path in (victim, link, victim / "file"):
        with pytest.raises(TierwiseError, match="is no recording"):
            remove_recording(path)
    assert (victim / "file").read_text() == "theirs"


def planted(run_dir: Path, kind: str, name: str, **facts: str) -> Path:
    """An entry whose owner is dead."""
    owner = {"pid": 1, "start_ticks": 0, "boot_id": "another"}
    file = run_dir / f"{kind}-{name}.json"
    file.write_text(json.dumps({"kind": kind, "name": name, "owner": owner, "facts": facts}))
    return file


def test_a_ledger_that_others_may_write_is_refused(run_dir: Path) -> None:
    run_dir.chmod(0o777)
    with pytest.raises(TierwiseError, match="can be written by others"):
        clean()
    run_dir.chmod(0o755)


@pytest.mark.parametrize("kind", ["directory", "disk"])
def test_an_entry_undoes_only_what_tierwise_makes(kind: str, run_dir: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    facts = {fact: str(victim) for fact in ("path", "home", "mount")}
    file = planted(run_dir, kind, "planted-00000000", **facts)
    with pytest.raises(TierwiseError, match=str(victim)):
        clean()
    assert victim.is_dir()
    file.unlink()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": "disk"}', "\udcff"])
def test_a_damaged_entry_is_one_line_and_the_rest_is_undone(text: str, run_dir: Path) -> None:
    damaged = run_dir / "disk-damaged.json"
    damaged.write_bytes(text.encode("utf-8", "surrogateescape"))
    left = run_dir / "left-00000000"
    left.mkdir()
    planted(run_dir, "directory", left.name, path=str(left))
    with pytest.raises(TierwiseError, match="damaged entry of the ledger") as caught:
        clean()
    assert "\n" not in str(caught.value)
    assert not left.exists()
    damaged.unlink()


def words_of(recording: Path) -> str:
    """All text in a recording."""
    problems = [(recording / "about.json").read_text("utf-8")]
    for table in recording.glob("*.parquet"):
        problems += [str(row) for row in duckdb.read_parquet(str(table)).distinct().limit(100_000).fetchall()]
    return "\n".join(problems)


def test_a_redacted_recording_names_nothing_and_says_the_same(tmp_path: Path) -> None:
    from tierwise.predict import Predictor, Scenario

    source = EXAMPLE
    redact_recording(source, tmp_path / "shared")
    before, after = words_of(source), words_of(tmp_path / "shared")
    paths = {word for word in before.split("'") if word.startswith("/")}
    names = {part for path in paths for part in path.split("/") if re.fullmatch(r"[a-z]+-[a-z]+-\w+", part)}
    assert paths and names
    assert not [name for name in paths | names if name in after]
    parts = [Predictor.open(path).predict([Scenario()])[0] for path in (source, tmp_path / "shared")]
    assert parts[0].rate_per_s == parts[1].rate_per_s


def test_a_redacted_recording_takes_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    with pytest.raises(TierwiseError, match="is not empty"):
        redact_recording(EXAMPLE, tmp_path)


def test_what_the_kernel_writes_while_it_is_read_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TierwiseError, match="the kernel writes it while it is read"):
        read_text(Path("/proc/uptime"), "name a file")
    empty = tmp_path / "empty"
    empty.touch()
    assert read_text(empty, "name a file") == ""

    def nothing_yet(*_: object) -> bytes:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("os.pread", nothing_yet)  # as /proc/kmsg answers
    with pytest.raises(TierwiseError, match="the kernel writes it while it is read"):
        read_text(empty, "name a file")
