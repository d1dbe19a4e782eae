"""What others wrote is only shown: no terminal obeys it, no spreadsheet runs it, no renderer ends by it."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from support import forked
from support.malformed_recordings import small_recording
from support.results_factory import INFO, Make, run
from tierwise.cli.output import print_warning

PACKAGE = Path(__file__).parents[3] / "python" / "tierwise"
EXAMPLE = Path(__file__).parents[3] / "examples" / "recordings" / "keyed-update"
ESCAPE = "\x1b]0;owned\x07\x9b31m\u202egnp"


def unprintable(text: str) -> set[str]:
    commands = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {
        character
        for character in text
        if unicodedata.category(character) in commands and character not in "\n\t\u2060"
    }


def escaping_recording(folder: Path) -> Path:
    """A recording whose every text has escape sequences."""
    path = small_recording(folder / f"r{ESCAPE}")
    about = json.loads((path / "about.json").read_bytes())
    about["engine_version"] = about["machine"]["processor"] = about["machine"]["kernel"] = ESCAPE
    about["warnings"] = [f"mmap {ESCAPE}"]
    about["checks"] = [{"name": f"=1+1{ESCAPE}", "passed": False, "detail": f"@SUM(1){ESCAPE}"}]
    about["devices"][0] |= {"name": f"sdb{ESCAPE}", "mount": f"/{ESCAPE}"}
    about["settings"] = {ESCAPE: ESCAPE}
    (path / "about.json").write_text(json.dumps(about))
    return path


@pytest.mark.parametrize("format", ["text", "md", "csv", "json"])
@pytest.mark.parametrize("asked", [["recording", "show"], ["recording", "list"], ["profile"], ["predict"]])
def test_what_a_recording_says_is_only_shown(asked: list[str], format: str, tmp_path: Path) -> None:
    path = escaping_recording(tmp_path)
    more = ["--place", "log=nvme-dc"] if asked == ["predict"] else []
    where = path.parent if asked[-1] == "list" else path
    ended = forked.command(*asked, where, *more, "--format", format)
    assert ended.printed and not unprintable(ended.printed), ended


def test_an_error_is_only_shown(tmp_path: Path) -> None:
    for asked in (
        ["recording", "show", tmp_path / ESCAPE],
        ["-v", "recording", "show", tmp_path / ESCAPE],
        ["recording", "show", tmp_path, ESCAPE],
        ["device", "show", f"{ESCAPE}.toml"],
        ["predict", EXAMPLE, "--place", ESCAPE],
        [ESCAPE],
    ):
        printed = forked.command(*asked).printed
        assert "owned" in printed and not unprintable(printed), printed


def test_what_results_say_is_only_shown(tmp_path: Path) -> None:
    results_in(tmp_path / "a", f"one{ESCAPE}")
    results_in(tmp_path / "b", f"one{ESCAPE}")
    for format in ("text", "md", "csv", "html", "json"):
        printed = forked.command("compare", tmp_path / "a", tmp_path / "b", "--format", format).printed
        assert "owned" in printed and not unprintable(printed)


def results_in(folder: Path, placement: str) -> Path:
    folder.mkdir(parents=True)
    runs = [
        run(Make(order=number, repeat=number)).model_copy(update={"placement": placement})
        for number in range(3)
    ]
    (folder / "results.jsonl").write_text("".join(completed.model_dump_json() + "\n" for completed in runs))
    (folder / "study.json").write_text(INFO.model_dump_json())
    return folder


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\uff1d1", "-2+3+cmd|' /C calc'!A0"]
)
def test_a_spreadsheet_runs_no_cell(cell: str, tmp_path: Path) -> None:
    path = small_recording(tmp_path / "r")
    about = json.loads((path / "about.json").read_bytes())
    about["checks"] = [{"name": cell, "passed": False, "detail": "-1.5"}]
    (path / "about.json").write_text(json.dumps(about))
    printed = forked.command("recording", "show", path, "--format", "csv").printed
    assert f"'{cell}".replace("\t", "?") in printed.replace("\t", "?") and "'-1.5" not in printed


def test_a_name_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    print_warning("left out: a\ntierwise: nothing is wrong")
    assert capsys.readouterr().err == "warning: left out: a?tierwise: nothing is wrong\n"


def test_the_command_line_prints_by_one_function() -> None:
    for path in sorted([*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / "lab" / "cli").glob("*.py")]):
        if path.name == "printing.py":
            continue
        text = path.read_text("utf-8")
        assert not re.search(
            r"typer\.echo|sys\.std(out|err)\.write|(?<![\w.])print\(|[^_.]\bConsole\(", text
        ), path


def test_the_static_recorder_prints_by_one_function() -> None:
    sources = PACKAGE.parents[1] / "crates" / "recorder" / "src"
    text = "".join(path.read_text("utf-8") for path in sources.rglob("*.rs") if "tests" not in path.parts)
    printing = [re.sub(r"\s", "", line) for line in re.findall(r"^.*print(?:ln)?!\(.*$", text, re.MULTILINE)]
    assert sorted(printing) == sorted(
        [
            'eprintln!("{}",without_control_characters(text));',
            'println!("{}",without_control_characters(text));',
            'print!("{}",arguments::HELP);',
        ]
    )
