"""Recordings of a fleet: found, copied from stores, left out; weights, and packages that are missing."""

from __future__ import annotations

import pickle
import shutil
import sys
from pathlib import Path

import pytest

from support.fleet_factory import EXAMPLES, NVME, write_recordings
from tierwise.advise import AdviceOptions, PaymentTerms
from tierwise.cluster import remote
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_advice import advise_fleet
from tierwise.fleet.fleet_databases import FleetWeights, RecordingLocation, SkippedRecording, find_recordings
from tierwise.host import ledger
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import ThreadExecutor
from tierwise.predict import Predictor
from tierwise.recording.recording import redact_recording


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return write_recordings(tmp_path / "recordings")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[databases.a]\nimportance = 0", "databases.a.importance"),
        ("[databases.a]\nimportance = nan", "databases.a.importance"),
        ('[databases.a]\np99 = "5 parsecs"', "databases.a.p99"),
        ('[databases.a]\np99 = "5ms"\nfrozen = true', "one of frozen and p99"),
        ("[databases.a]\nweight = 2", "databases.a.weight"),
        ("databases = 3", "databases"),
        ("[databases", r"Expected '\]'"),
    ],
)
def test_weights_that_are_wrong_are_named(text: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "weights.toml"
    file.write_text(text)
    with pytest.raises(TierwiseError, match=f"(?s)weights.toml.*{named}"):
        FleetWeights.read(file)


def test_a_recording_counts_once_however_its_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to("shop")
    monkeypatch.chdir(tmp_path)
    tasks, _ = find_recordings(["shop", "./shop", f"{tmp_path}/shop", "*"])
    assert [(task.name, task.uri) for task in tasks] == [("shop", f"{tmp_path}/shop")]


def test_names_are_those_of_folders_as_long_as_they_differ(tmp_path: Path) -> None:
    for folder in ("a/shop", "b/shop", "b/\x1b[31mred"):
        (tmp_path / folder).mkdir(parents=True)
    tasks, left_out = find_recordings([f"{tmp_path}/*/*", f"{tmp_path}/a/shop/", f"{tmp_path}/c*"])
    assert [task.name for task in tasks] == [
        f"{tmp_path}/a/shop",
        "?[31mred",
        f"{tmp_path}/b/shop",
    ]
    assert [excluded.name for excluded in left_out] == [f"{tmp_path}/c*"]


@pytest.mark.parametrize("written", [".", "..", "../../shop/.", "./"])
def test_a_folder_that_dots_name_has_its_own_name(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "shop").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop" / "shop")
    assert [task.name for task in find_recordings([written])[0]] == ["shop"]


def test_a_store_is_copied_from_read_only_and_the_copy_is_removed(
    recordings: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec of the extra cluster is not installed")
    monkeypatch.setattr(remote, "PROTOCOLS", ("memory",))
    store = fsspec.filesystem("memory")
    store.put(f"{recordings}/", "/fleet/", recursive=True)
    (stored, _), before = find_recordings(["memory://fleet/*"]), store.find("/fleet", detail=True)
    assert [task.name for task in stored] == ["keyed-update", "order-entry", "photos", "torn"]
    tasks = [DatabaseOptionsTask(task, (NVME,), PaymentTerms(), seeds=2) for task in stored]
    rows = [database_options(pickle.loads(pickle.dumps(task))) for task in tasks]
    here = database_options(
        DatabaseOptionsTask(
            RecordingLocation("keyed-update", f"{recordings}/keyed-update"), (NVME,), PaymentTerms(), seeds=2
        )
    )
    assert isinstance(rows[0], DatabaseOptions) and isinstance(here, DatabaseOptions)
    assert rows[0].options == here.options and len(here.options) > 1
    assert isinstance(rows[2], SkippedRecording) and "about.json" in rows[2].problem
    assert isinstance(rows[3], SkippedRecording) and "blocks.parquet" in rows[3].problem
    assert store.find("/fleet", detail=True) == before and not ledger.entries()
    monkeypatch.setattr(remote, "MOST_BYTES", 1000)
    large = database_options(tasks[0])
    assert isinstance(large, SkippedRecording) and "above 1,000 bytes" in large.problem
    store.rm("/fleet", recursive=True)
    gone = database_options(tasks[0])
    assert isinstance(gone, SkippedRecording) and "about.json" in gone.problem


def test_a_store_that_does_not_answer_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem

    def denied(*_: object, **__: object) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(remote, "PROTOCOLS", ("memory",))
    monkeypatch.setattr(memory, "glob", denied)
    tasks, (left_out,) = find_recordings([str(EXAMPLES / "order-entry"), "memory://x/*"])
    assert len(tasks) == 1 and left_out.problem == "memory://x/*: no route"


@pytest.mark.parametrize(
    ("uri", "line"), [("s3://b/x", "pip install s3fs"), ("gs://b/x", "pip install gcsfs")]
)
def test_a_missing_package_is_named_with_the_line_to_type(
    uri: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec", reason="fsspec of the extra cluster is not installed")
    monkeypatch.setitem(sys.modules, line.rpartition(" ")[2], None)
    with pytest.raises(HostError, match=line):
        find_recordings([uri])
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(HostError, match=r"fsspec: type: pip install 'tierwise\[cluster\]'"):
        find_recordings([uri])
    assert find_recordings([str(EXAMPLES / "*")])[0], "paths need no package"


def test_without_scipy_the_line_to_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(HostError, match=r"scipy: type: pip install 'tierwise\[cluster\]'"):
        advise_fleet([], AdviceOptions(["nvme-dc"]), ThreadExecutor())


def test_a_defect_costs_no_other_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: 1 / 0)
    options = database_options(
        DatabaseOptionsTask(RecordingLocation("a", str(EXAMPLES / "order-entry")), (NVME,), PaymentTerms())
    )
    assert (
        isinstance(options, SkippedRecording) and "defect of tierwise: ZeroDivisionError" in options.problem
    )


def test_a_copy_of_a_recording_is_no_second_database(tmp_path: Path) -> None:
    """A redacted copy, made for others, counted its gain and its price twice."""
    redact_recording(EXAMPLES / "keyed-update", tmp_path / "shared")
    shutil.copytree(EXAMPLES / "keyed-update", tmp_path / "shop")
    tasks, _ = find_recordings([f"{tmp_path}/*"])
    options = AdviceOptions([NVME], terms=PaymentTerms())
    advice = advise_fleet(tasks, options, ThreadExecutor(1), seeds=1)
    assert [database.name for database in advice.databases] == ["shared"]
    (copy,) = advice.left_out
    assert (copy.name, copy.problem) == ("shop", "it is a copy of the recording of shared")
