"""Tables, descriptions and TOML that lie about their size: refused before they take memory or time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import forked
from support import parquet_forge as forge
from support.malformed_recordings import small_recording
from support.malformed_tables import bomb, honest, vouched
from support.parquet_forge import BYTE_ARRAY, INT64, Column, Page
from support.recording_factory import ONE_COMMIT
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import parse_toml


def with_table(folder: Path, name: str, content: bytes, rows: int) -> Path:
    path = small_recording(folder / "r")
    (path / f"{name}.parquet").write_bytes(content)
    about = json.loads((path / "about.json").read_bytes())
    about["tables"][name] |= vouched(content, {"rows": rows})
    (path / "about.json").write_text(json.dumps(about))
    return path


def column_of(name: str, pages: list[Page], table: str = "states", codec: int = 0) -> list[Column]:
    """The honest columns of a table, one of them with other pages."""
    return [
        Column(name, column.kind, pages, column.optional, codec) if column.name == name else column
        for column in honest(table)
    ]


def same_text_again(length: int, many: int) -> bytes:
    """Texts that all are the one before them, whole: steps of lengths, in one part of 32 bits each."""
    part = bytes([32, 0, 0, 0])
    first = length.to_bytes(4, "little").ljust(128, b"\0")
    later = bytes(4) + length.to_bytes(4, "little") * (many - 2)
    prefixes = forge.deltas(many, forge.zigzag(0) + part + first)
    suffixes = forge.deltas(many, forge.zigzag(-length) + part + later.ljust(128, b"\0"), first=length)
    return prefixes + suffixes + b"y" * length


def lying_tables() -> dict[str, tuple[str, Callable[[], bytes], int]]:
    """Table, its content and the rows that about.json says, by what the lie is about."""
    rows, files = len(ONE_COMMIT["states"]), len(ONE_COMMIT["files"])
    many = 30_000_000
    once = Page(forge.numbers([0]), 1, kind=forge.DICTIONARY_PAGE)
    repeated = Page(forge.dictionary_indices(0, many), many, forge.DICTIONARY)
    all_zero = [Column(column.name, INT64, [once, repeated]) for column in honest("states")]
    endless = Page(forge.numbers([0]), 1 << 31, kind=forge.DICTIONARY_PAGE)
    gigabyte, rest = Page(bomb(1 << 30), rows, plain_bytes=1 << 30), honest("states")[1:]
    lengths = Page(forge.deltas(300_000_000, bytes(100)), files, forge.DELTA_LENGTHS)
    return {
        "rows": ("states", lambda: forge.file(all_zero, many), many),
        "rows of about.json": ("states", lambda: forge.file(honest("states"), rows), many),
        "size of a page": (
            "states",
            lambda: forge.file([Column("thread", INT64, [gigabyte], stated={"codec": 6}), *rest], rows),
            rows,
        ),
        "values of a dictionary": (
            "states",
            lambda: forge.file(column_of("thread", [endless, repeated]), rows),
            rows,
        ),
        "lengths of texts": (
            "files",
            lambda: forge.file(column_of("path", [lengths], "files"), files),
            files,
        ),
        "beginnings of texts": (
            "files",
            lambda: forge.file(
                [
                    Column("path", BYTE_ARRAY, [Page(same_text_again(14 << 20, 30), 30, forge.DELTA_TEXTS)])
                    if column.name == "path"
                    else column
                    for column in honest("files", [(n, "x", "log", 0, 0) for n in range(30)])
                ],
                30,
            ),
            30,
        ),
        "length of the metadata": (
            "states",
            lambda: forge.file(honest("states"), rows, more=[(20, b"x" * (2 << 20))]),
            rows,
        ),
    }


@pytest.mark.parametrize("lie", lying_tables())
def test_a_table_that_lies_takes_no_memory(lie: str, tmp_path: Path) -> None:
    name, content, rows = lying_tables()[lie]
    path = with_table(tmp_path, name, content(), rows)
    printed = forked.command("profile", path, "--no-savings").refusal
    assert f"{name}.parquet" in printed


def test_a_text_repeated_from_a_dictionary_is_limited(tmp_path: Path) -> None:
    many = 60_000
    rows = [(number, "x", "log", 0, 0) for number in range(many)]
    texts = [
        Page(forge.texts([b"/d/" + b"x" * 8000]), 1, kind=forge.DICTIONARY_PAGE),
        Page(forge.dictionary_indices(0, many), many, forge.DICTIONARY),
    ]
    columns = [
        Column("path", BYTE_ARRAY, texts) if column.name == "path" else column
        for column in honest("files", rows)
    ]
    path = with_table(tmp_path, "files", forge.file(columns, many), many)
    assert "has texts of more than" in forked.command("profile", path, "--no-savings").refusal


def test_an_about_of_no_use_takes_little_memory(tmp_path: Path) -> None:
    path = small_recording(tmp_path / "r")
    about = json.loads((path / "about.json").read_bytes())
    text = json.dumps(about)[:-1] + ', "other": [' + "[]," * 2_500_000 + "[]]}"
    (path / "about.json").write_text(text)
    ended = forked.command("recording", "show", path)
    assert ended.status == 0 and ended.taken_bytes < 100 << 20


@pytest.mark.parametrize("text", [".".join("a" * 40_000) + " = 1", "a = [" * 5_000, "a = " + "9" * 5_000])
def test_a_toml_file_takes_no_minute(text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(TierwiseError, match=r"own\.toml"):
        parse_toml(text, "own.toml")
    assert time.process_time() - began_s < 2
