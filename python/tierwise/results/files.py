"""Result files: JSON Lines that survive a kill, the study beside them, Parquet for queries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Literal, TypeVar

from pydantic import ValidationError

from tierwise.model.errors import TierwiseError
from tierwise.model.extras import duckdb
from tierwise.model.input_files import read_text
from tierwise.results import SCHEMA_VERSION, RunResult, StudyInfo
from tierwise.results.measurements import Record

_MOST_BYTES = 1 << 30
_RecordT = TypeVar("_RecordT", bound=Record)


def write_study_info(path: Path, info: StudyInfo) -> None:
    """Write ``study.json``, replacing what was there."""
    with _private(path, "wb") as file:
        file.write(info.model_dump_json(indent=2).encode() + b"\n")


def read_study_info(path: Path) -> StudyInfo:
    """Read ``study.json``.

    Raises:
        TierwiseError: if the file is missing, or is not a study of this schema version.
    """
    return _validated(StudyInfo, read_text(path, "name a directory that a study has written"), str(path))


def append_result(path: Path, result: RunResult) -> None:
    """Add one record to a JSON Lines file and force it to disk, so that a kill loses no finished run.

    A last line cut short by a crash or a full disk is removed first.

    Raises:
        TierwiseError: if the file cannot be written; records before this one stay.
    """
    line = result.model_dump_json().encode() + b"\n"
    try:
        whole_bytes = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
        with _private(path, "ab") as file:
            file.truncate(whole_bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "make room, then run the study again") from error


def replace_results(path: Path, results: Iterable[RunResult]) -> None:
    """Replace the records of a JSON Lines file: a kill leaves the old file or the new one.

    Raises:
        TierwiseError: if it cannot be written; the old one stays.
    """
    draft = path.with_suffix(".draft")
    try:
        with _private(draft, "wb") as file:
            file.writelines(result.model_dump_json().encode() + b"\n" for result in results)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "make room, then resume the study again") from error


def read_results(path: Path) -> list[RunResult]:
    """Read a JSON Lines file of results; a last line cut short by a crash is left out.

    Raises:
        TierwiseError: if the file is missing, or a line is not a result of this schema version.
    """
    fix = "name the results.jsonl of a study that has run"
    complete = read_text(path, fix, most_bytes=_MOST_BYTES).split("\n")[:-1]
    found = [_validated(RunResult, line, f"{path}:{n}") for n, line in enumerate(complete, start=1) if line]
    counted = Counter(result.run_id for result in found)
    if twice := [run_id for run_id, count in counted.items() if count > 1]:
        raise TierwiseError(f"{path}: run {twice[0]} is there twice", "remove one of its lines")
    return found


def _private(path: Path, mode: Literal["ab", "wb"]) -> IO[bytes]:
    """Open a file that only its owner may read, because it describes the machine and its data."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def _validated(model: type[_RecordT], text: str, where: str) -> _RecordT:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "record"
        raise TierwiseError(
            f"{where}: {field}: {first['msg']}",
            f"read it with the tierwise that wrote it, or run the study again (schema {SCHEMA_VERSION})",
        ) from error


def write_parquet(path: Path, results: Iterable[RunResult]) -> None:
    """Write the records as one Parquet table, nested parts as structs.

    Raises:
        TierwiseError: if it cannot be written; the records themselves are elsewhere.
    """
    import tempfile

    draft = path.with_suffix(".draft")
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as lines:
            lines.writelines(result.model_dump_json() + "\n" for result in results)
            lines.flush()
            duckdb.read_json(lines.name, format="newline_delimited").write_parquet(str(draft))
        draft.chmod(0o600)
        draft.replace(path)
    except (OSError, duckdb.Error) as error:
        raise TierwiseError(
            f"{path}: {str(error).splitlines()[0]}", "make room, then run the study again: no run is repeated"
        ) from error
