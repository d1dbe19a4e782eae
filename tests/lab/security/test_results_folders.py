"""Results are added to the caller's own folders and files only, and no link of another user is followed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from support import forked
from support.results_factory import INFO, Make, run
from support.tiny_study import tiny_study
from tierwise.fleet.option_row_store import OptionRowStore
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.study_runner import _create, _info
from tierwise.lab.validation.slot_rows import append_slot_row
from tierwise.model import file_lock
from tierwise.model.errors import TierwiseError
from tierwise.results.result_files import append_record, replace_results, write_study_info

NOBODY = 65534
REFUSED = re.compile(r"belongs to nobody|another user|link|a pipe, a device or has|can be written by others")
"""What a refusal names: the owner, the kind of file, or who may write."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
EXAMPLE = Path(__file__).parents[3] / "examples" / "recordings" / "keyed-update"
FLEET = ["fleet", "advise", str(EXAMPLE), "--devices", "nvme-dc", "--seeds", "2"]
SECRET = "root:x:0:0\n"


def results_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    lines = [run(Make(order=number, repeat=number)).model_dump_json() + "\n" for number in range(2)]
    (folder / "results.jsonl").write_text("".join(lines))
    (folder / "study.json").write_text(INFO.model_dump_json())
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    return file


def unfinished(tmp_path: Path, folder: Path) -> tuple[Path, object]:
    """A study, and results of it that were interrupted, in a folder."""
    study = tiny_study(tmp_path, "sqlite", "single_commit", "transactions = 1")
    info = INFO.model_copy(update={"name": "tiny", "fingerprint": runner.study_fingerprint(study), "seed": 1})
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(info.model_dump_json())
    return study, info


@needs_root
@pytest.mark.parametrize("whose", ["the study's folder", "the link", "the folder behind it"])
def test_results_of_another_user_are_not_resumed(whose: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    study, _ = unfinished(tmp_path, out / "tiny" / "once")
    (out / "tiny" / "latest").symlink_to("once")
    assert runner.find_latest_results(study, out, None) == out / "tiny" / "once"
    foreign = {
        "the study's folder": out / "tiny",
        "the link": out / "tiny" / "latest",
        "the folder behind it": out / "tiny" / "once",
    }
    os.lchown(foreign[whose], NOBODY, NOBODY)
    with pytest.raises(TierwiseError, match=REFUSED):
        runner.find_latest_results(study, out, None)


@pytest.mark.parametrize("target", ["elsewhere", "../../elsewhere", "/"])
def test_latest_names_a_folder_beside_it(target: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    study, _ = unfinished(tmp_path, tmp_path / "elsewhere")
    (out / "tiny").mkdir(parents=True)
    (out / "tiny" / "latest").symlink_to(target if target != "elsewhere" else tmp_path / "elsewhere")
    assert runner.find_latest_results(study, out, None) is None


@needs_root
def test_a_study_folder_behind_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    study, _ = unfinished(tmp_path, tmp_path / "elsewhere")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "tiny").symlink_to(tmp_path / "elsewhere")
    os.lchown(tmp_path / "results" / "tiny", NOBODY, NOBODY)
    with pytest.raises(TierwiseError, match=REFUSED):
        _create(_info(study, {}, 1), tmp_path / "results")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["study.json"]


def test_a_folder_that_all_may_write_to_is_refused(tmp_path: Path) -> None:
    study, _ = unfinished(tmp_path, tmp_path / "results" / "tiny" / "once")
    (tmp_path / "results" / "tiny").chmod(0o777)
    with pytest.raises(TierwiseError, match=REFUSED):
        runner.find_latest_results(study, tmp_path / "results", None)


def test_a_folder_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    study, _ = unfinished(tmp_path, tmp_path / "results" / "tiny" / "once")
    (tmp_path / "results" / "tiny" / "latest").symlink_to("gone")
    assert runner.find_latest_results(study, tmp_path / "results", None) is None
    made = _create(_info(study, {}, 1), tmp_path / "results")
    assert runner.find_latest_results(study, tmp_path / "results", None) == made


def plant(kind: str, file: Path, secret: Path) -> None:
    match kind:
        case "link":
            file.symlink_to(secret)
        case "second name":
            file.hardlink_to(secret)
        case "pipe":
            os.mkfifo(file)
        case _:
            file.write_text("theirs\n")
            os.chown(file, NOBODY, NOBODY)


WRITES = {
    "results.jsonl": lambda folder: append_record(folder / "results.jsonl", run(Make())),
    "results.draft": lambda folder: replace_results(folder / "results.jsonl", [run(Make())]),
    "study.json": lambda folder: write_study_info(folder / "study.json", INFO),
    "slots.jsonl": lambda folder: append_slot_row(folder, a_row()),
    "lock": lambda folder: file_lock.held(folder / "lock").__enter__(),
}


def a_row() -> object:
    from support.validation_factory import row

    return row()


@needs_root
@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "file of another user"])
@pytest.mark.parametrize("name", WRITES)
def test_what_another_user_planted_is_not_written_to(
    name: str, kind: str, tmp_path: Path, secret: Path
) -> None:
    folder = tmp_path / "once"
    folder.mkdir()
    plant(kind, folder / name, secret)
    ended = forked.forked(lambda: WRITES[name](folder), within_s=10)
    assert ended.status == 0 and REFUSED.search(ended.refused), ended
    assert secret.read_text() == SECRET


@needs_root
@pytest.mark.parametrize("kind", ["link", "second name"])
def test_a_report_is_not_written_through_what_another_user_planted(
    kind: str, tmp_path: Path, secret: Path
) -> None:
    folder = results_in(tmp_path / "once")
    plant(kind, folder / "report.html", secret)
    os.lchown(folder / "report.html", NOBODY, NOBODY)
    ended = forked.command("report", folder)
    assert secret.read_text() == SECRET
    assert "report.html belongs to nobody" in ended.printed


def test_a_report_is_not_written_through_a_link_of_ones_own(tmp_path: Path, secret: Path) -> None:
    """Root owns the links of an archive that root has unpacked."""
    folder = results_in(tmp_path / "once")
    (folder / "report.html").symlink_to(secret)
    assert "report.html is a symbolic link" in forked.command("report", folder).printed
    assert secret.read_text() == SECRET


def test_a_report_goes_to_a_pipe_or_a_device(tmp_path: Path) -> None:
    folder = results_in(tmp_path / "once")
    assert forked.command("report", folder, "-o", "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    assert forked.command("report", folder, "-o", tmp_path / "pipe").status == 2, "nobody reads it"


def test_a_report_of_many_studies_follows_no_link(tmp_path: Path) -> None:
    results_in(tmp_path / "private" / "once")
    results_in(tmp_path / "theirs" / "own" / "once")
    (tmp_path / "theirs" / "own" / "latest").symlink_to(tmp_path / "private" / "once")
    (tmp_path / "theirs" / "linked").symlink_to(tmp_path / "private")
    for asked in (["compare", tmp_path / "theirs" / "own", tmp_path / "private" / "once"],):
        assert "no results there" in forked.command(*asked).printed
    page = tmp_path / "page.html"
    forked.command("report", tmp_path / "theirs", "-o", page)
    assert INFO.question not in (page.read_text() if page.exists() else "")


@needs_root
@pytest.mark.parametrize("part", ["", "question=*"])
def test_rows_of_a_fleet_are_kept_in_ones_own_folder(part: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="rows are kept as Parquet")
    asked = [*FLEET, "--results", tmp_path / "kept"]
    assert forked.command(*asked).status == 0
    foreign = next((tmp_path / "kept").glob(part)) if part else tmp_path / "kept"
    os.chown(foreign, NOBODY, NOBODY)
    assert REFUSED.search(forked.command(*asked).refusal)


def test_a_part_of_a_fleet_is_a_file_of_few_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="rows are kept as Parquet")
    asked = [*FLEET, "--results", tmp_path / "kept"]
    assert forked.command(*asked).status == 0
    part = next((tmp_path / "kept").glob("*/part-*.parquet"))
    part.rename(tmp_path / "moved")
    part.symlink_to(tmp_path / "moved")
    assert "symbolic link" in forked.command(*asked).refusal
    with OptionRowStore.opened(tmp_path / "kept"):
        pass
