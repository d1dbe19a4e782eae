"""Rows of finished databases: kept as a partitioned Parquet data set for a resume, or worked out now."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import import_module, metadata
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_databases import SkippedRecording, tasks_with_checksums
from tierwise.model import file_lock
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import Executor, LostTask
from tierwise.model.extras import require_extra
from tierwise.model.input_files import read_bytes
from tierwise.model.names import printable
from tierwise.model.output_files import make_own_folder, open_output_file

MOST_ROWS = 64
"""Databases in one file at most."""
_FLUSHED_AFTER_S = 2.0
"""A result that comes so long after the last file was written is written at once."""
_PART = re.compile(r"part-(\d{6,9})\.parquet")
_UNFINISHED = ".part.tmp"
_FIX = "delete that file; its databases are done again"
_MAPS = ("placement", "taken_along")


class OptionRowStore:
    """The rows that one run adds to a data set, and those that former runs left in it.

    ``DIR/question=HASH/part-NUMBER.parquet`` has one row for each database. Everything that all databases of
    a run have in common makes the hash: devices, terms, seeds, version. Another question thus has a folder of
    its own. Within it, a task is known by its recording, the checksum of its files, and its goal.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._folder = folder
        self._question = ""
        self._waiting: list[dict[str, Any]] = []
        self._flushed_s = time.monotonic()
        self._next = 0

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[OptionRowStore]:
        """The results in a folder, which is made if there is none; no other run may use it meanwhile."""
        require_extra("cluster", "--results", ["pyarrow"])
        with _problems(folder):
            make_own_folder(folder)
        busy = f"--results: another run writes to {folder}"
        with file_lock.held(
            folder / ".lock", busy=TierwiseError(busy, "wait for it, or name another directory")
        ):
            yield cls(folder)

    def known(self, tasks: Sequence[DatabaseOptionsTask]) -> dict[int, DatabaseOptions]:
        """Index -> rows of the tasks that a former run has finished; all tasks belong to one question."""
        if not tasks:
            return {}
        self._question = _digest(_run_identity(tasks[0]))
        self._folder = self._root / f"question={self._question[:16]}"
        with _problems(self._root):
            make_own_folder(self._folder)
            (self._folder / _UNFINISHED).unlink(missing_ok=True)
            parts = sorted(
                (int(match[1]), file)
                for file in self._folder.iterdir()
                if (match := _PART.fullmatch(file.name))
            )
        self._next = parts[-1][0] + 1 if parts else 0
        rows = {key: row for _, file in parts for key, row in _read(file)}
        keys = [self._key(task) for task in tasks]
        return {number: rows[key] for number, key in enumerate(keys) if key in rows}

    def add(self, task: DatabaseOptionsTask, rows: DatabaseOptions) -> None:
        """Keep the rows of a task; they are on disk after the next :meth:`flush` or a little later."""
        if task.checksum is None:
            return
        self._waiting.append({"task": self._key(task), **_as_arrow(rows)})
        if len(self._waiting) >= MOST_ROWS or time.monotonic() - self._flushed_s >= _FLUSHED_AFTER_S:
            self.flush()

    def flush(self) -> None:
        """Write what was added as one file, which appears whole or not at all."""
        if not self._waiting:
            return
        pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
        table = pa.Table.from_pylist(self._waiting, schema=_schema())
        unfinished = self._folder / _UNFINISHED
        with _problems(self._root):
            try:
                with open_output_file(unfinished, "new") as file:
                    pq.write_table(table, file)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.rename(self._folder / f"part-{self._next:06}.parquet")
            finally:
                unfinished.unlink(missing_ok=True)
            _sync(self._folder)
        self._next += 1
        self._waiting = []
        self._flushed_s = time.monotonic()

    def _key(self, task: DatabaseOptionsTask) -> str:
        where = task.recording
        return _digest([self._question, where.name, where.uri, task.checksum, task.goal])


def _run_identity(task: DatabaseOptionsTask) -> dict[str, Any]:
    """What the tasks of one run have in common."""
    return {
        "version": metadata.version("tierwise"),
        "devices": task.devices,
        "profiles": {str(profile.file): [profile.text, dict(profile.library)] for profile in task.profiles},
        "terms": asdict(task.terms),
        "seeds": task.seeds,
        "fresh": task.fresh,
        "model_error": task.model_error,
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a digest")


def _schema() -> Any:
    pa = import_module("pyarrow")
    text, number = pa.string(), pa.float64()
    texts = pa.list_(text)
    estimate = pa.struct({"value": number, "low": number, "high": number})
    option = pa.struct(
        {
            "placement": pa.map_(text, text),
            "taken_along": pa.map_(text, text),
            "cost_per_month": number,
            "speedup": estimate,
            "told": pa.bool_(),
            "seed_half_width": number,
            "most_speedup": number,
            "rate_per_s": estimate,
            "p99_us": estimate,
            "verdict": text,
            "log_device": pa.struct(
                {
                    "device": text,
                    "roles": texts,
                    "size_bytes": pa.int64(),
                    "busy_share": number,
                    "written_bytes_per_s": number,
                    "obstacle": text,
                }
            ),
        }
    )
    names = ("task", "name", "uri", "engine", "engine_version", "unit", "recorded_run")
    fields = dict.fromkeys(names, text) | {"options": pa.list_(option)}
    fields |= {"worth_per_month": number} | dict.fromkeys(("unusable", "warnings", "notes"), texts)
    return pa.schema(fields)


def _as_arrow(rows: DatabaseOptions) -> dict[str, Any]:
    content = rows.model_dump(mode="json")
    for option in content["options"]:
        option.update({name: list(option[name].items()) for name in _MAPS})
    return content


def _read(file: Path) -> Iterator[tuple[str, DatabaseOptions]]:
    pq = import_module("pyarrow.parquet")
    try:
        parquet = pq.ParquetFile(BytesIO(read_bytes(file, _FIX, in_folder=True)))
        if parquet.schema_arrow.names != _schema().names or parquet.metadata.num_rows > MOST_ROWS:
            raise ValueError("other columns, or more rows")
        table = parquet.read()
        for row in table.to_pylist():
            for option in row["options"]:
                option.update({name: dict(option[name]) for name in _MAPS})
            yield row.pop("task"), DatabaseOptions.model_validate(row)
    except (OSError, ValueError, TypeError, KeyError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise TierwiseError(f"--results: {file}: {reason}", _FIX) from error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems refuse it for a directory
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _problems(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TierwiseError(
            f"--results: {error.filename or folder}: {error.strerror}",
            "name a directory that can be written to",
        ) from error


def option_rows(
    tasks: Sequence[DatabaseOptionsTask],
    executor: Executor,
    results: OptionRowStore | None,
    progress: Callable[[int, int], None],
) -> list[DatabaseOptions | SkippedRecording]:
    """The rows of each task, in order.

    Args:
        executor: does those that are not in ``results``.
        results: of former runs; the rows found now are added. A recording that was left out is tried again.
        progress: called with the number of finished databases and the number of all.
    """
    options: dict[int, DatabaseOptions | SkippedRecording] = {}
    if results is not None:
        tasks = tasks_with_checksums(tasks)
        options |= results.known(tasks)
    open_ = [number for number in range(len(tasks)) if number not in options]
    progress(len(options), len(tasks))
    try:
        for index, rows in executor.run(database_options, [tasks[number] for number in open_]):
            number = open_[index]
            options[number] = _left_out(tasks[number], rows) if isinstance(rows, LostTask) else rows
            if results is not None and isinstance(rows, DatabaseOptions):
                results.add(tasks[number], rows)
            progress(len(options), len(tasks))
    finally:
        if results is not None:
            results.flush()
    return [options[number] for number in range(len(tasks))]


def _left_out(task: DatabaseOptionsTask, lost: LostTask) -> SkippedRecording:
    where = task.recording
    return SkippedRecording(name=where.name, uri=printable(where.uri), problem=lost.problem, fix=lost.fix)
