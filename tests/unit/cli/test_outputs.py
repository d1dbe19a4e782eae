"""Files that commands write are tried before the work for them."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import tierwise as tw
from support.commands import tierwise
from support.paths import RECORDINGS
from tierwise.model import output_files
from tierwise.recording.command_outputs import require_writable_output

RECORDING = RECORDINGS / "keyed-update"


@pytest.mark.parametrize(
    "command",
    [
        ("predict", RECORDING, "--png"),
        ("profile", RECORDING, "--html"),
        ("profile", RECORDING, "--png"),
        ("advise", RECORDING, "--devices", "nvme-dc", "-o"),
        ("advise", RECORDING, "--devices", "nvme-dc", "--emit", "ansible", "-o"),
        ("fleet", "advise", str(RECORDING), "--devices", "nvme-dc", "-o"),
        ("recording", "export", RECORDING, "--perfetto"),
        ("device", "import", "geometry.json", "seek.csv", "-o"),
        ("device", "probe", "/nonexistent", "-o"),
        ("compare", "a", "b", "-o"),
        ("validate", "--judge-only", "--page"),
        ("validate", "--judge-only", "--publish"),
    ],
    ids=lambda command: " ".join(map(str, command)),
)
def test_a_file_that_cannot_be_made_is_refused_before_anything_is_read(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    for name in (
        "predict.Predictor.open",
        "recording.Recording.open",
        "lab.validation.round_judging.judge_rounds",
    ):
        monkeypatch.setattr(f"tierwise.{name}", opened)
    done = tierwise(*command, "/proc/nowhere/page.html")
    assert done.returncode == 2 and done.stdout == "", done
    (line,) = done.stderr.splitlines()
    assert "/proc/nowhere/page.html" in line and line.endswith(": name a place that you may write to")


def test_what_is_tried_leaves_nothing_behind(tmp_path: Path) -> None:
    for path in (tmp_path / "page.html", tmp_path / "new" / "folder" / "page.html", Path("/dev/null")):
        assert require_writable_output(path) == path
    assert list(tmp_path.iterdir()) == []
    page = tmp_path / "page.html"
    page.write_text("old")
    require_writable_output(page)
    assert page.read_text() == "old" and list(tmp_path.iterdir()) == [page]
    output_files.write_file(tmp_path / "new" / "page.html", "new")
    for path, message in ((tmp_path, "Is a directory"), (page / "below.html", "Not a directory")):
        with pytest.raises(tw.TierwiseError, match=message):
            require_writable_output(path)


def test_a_notebook_replaces_no_file_of_a_recording(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(RECORDING, copy)
    before = (copy / "about.json").read_bytes()
    view = tw.open_recording(copy).breakdown()  # type: ignore[union-attr]
    with pytest.raises(tw.TierwiseError, match="is a file of a recording"):
        view.to_html(copy / "about.json")
    with pytest.raises(tw.TierwiseError, match="name a place"):
        view.to_html("/proc/nowhere/page.html")
    assert (copy / "about.json").read_bytes() == before


@pytest.mark.parametrize("joint", [False, True], ids=["one recording", "several recordings"])
def test_a_prediction_draws_that_it_simulates(joint: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = StringIO()
    terminal = Console(file=drawn, force_terminal=True)
    monkeypatch.setattr("tierwise.cli.options.progress_console", lambda **_: terminal)
    arguments: list[str | Path] = [RECORDINGS / "order-entry", "--clients", "2"]
    if joint:
        place = "order-entry.log=nvme-dc#1,pgbench-10gb.log=nvme-dc#1"
        arguments = [RECORDINGS / "order-entry", RECORDINGS / "pgbench-10gb", "--place", place]
    done = tierwise("predict", *arguments, "--seeds", "2")
    assert done.returncode == 0, done
    assert "simulating" in drawn.getvalue()
