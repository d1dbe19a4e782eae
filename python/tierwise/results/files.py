"""Files of results: JSON Lines that a kill cannot harm, the study beside them, Parquet for queries."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from tierwise.errors import TierwiseError
from tierwise.results import SCHEMA_VERSION, RunResult, StudyInfo
from tierwise.results.measurements import Record

_RecordT = TypeVar("_RecordT", bound=Record)


def write_study_info(path: Path, info: StudyInfo) -> None:
    """Write ``study.json``, replacing what was there."""
    path.write_text(info.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_study_info(path: Path) -> StudyInfo:
    """Read ``study.json``.

    Raises:
        TierwiseError: if the file is missing, or is not a study of this schema version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TierwiseError(
            f"{path}: {error.strerror}", "name a directory that a study has written"
        ) from error
    return _validated(StudyInfo, text, str(path))


def append_result(path: Path, result: RunResult) -> None:
    """Add one record to a JSON Lines file and force it to disk, so that a kill loses no finished run.

    What a crash or a full disk left of a last line is cut off first.

    Raises:
        TierwiseError: if the file cannot be written; records before this one stay.
    """
    line = result.model_dump_json().encode() + b"\n"
    try:
        whole_bytes = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
        with path.open("ab") as file:
            file.truncate(whole_bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", "make room, then run the study again") from error


def replace_results(path: Path, results: Iterable[RunResult]) -> None:
    """Write the records of a JSON Lines file anew: a kill leaves the old file or the new one.

    Raises:
        TierwiseError: if it cannot be written; the old one stays.
    """
    draft = path.with_suffix(".draft")
    try:
        with draft.open("wb") as file:
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
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise TierwiseError(
            f"{path}: {error.strerror}", "name the results.jsonl of a study that has run"
        ) from error
    complete = lines[:-1]
    return [_validated(RunResult, line, f"{path}:{n}") for n, line in enumerate(complete, start=1) if line]


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
    """Write the records as one Parquet table, nested parts as structs."""
    import tempfile

    import duckdb

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as lines:
        lines.writelines(result.model_dump_json() + "\n" for result in results)
        lines.flush()
        duckdb.read_json(lines.name, format="newline_delimited").write_parquet(str(path))
