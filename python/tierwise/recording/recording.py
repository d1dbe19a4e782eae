"""Recordings and days of them: tables in a folder (docs/reference/recordings.md); other tools' files."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from tierwise import _core
from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.extras import duckdb
from tierwise.model.file_lock import claim_folder_lock
from tierwise.model.input_files import open_regular, parse_as_model
from tierwise.model.names import printable, resolved_path
from tierwise.model.numbers import percent_text
from tierwise.model.output_files import make_own_folder
from tierwise.model.placement import Role
from tierwise.model.units import MOST_BYTES, SECTOR_BYTES
from tierwise.recording.breakdown import Breakdown, ClientProgram, ForeignProgram, break_down, pooler_warning
from tierwise.recording.buffer_content import BUFFER_FILE, BufferContent, read_buffer
from tierwise.recording.relations import Relation, Relations, read_relation_names, relations_of
from tierwise.results.measurements import TolerantModel

_MOST_CORES = 1 << 16
Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Sectors = Annotated[int, Field(ge=0, le=MOST_BYTES // SECTOR_BYTES)]
Latency = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
"""In microseconds."""


def _require_time(text: str) -> str:
    try:
        started = datetime.fromisoformat(text)
        if started.tzinfo is not None and started.astimezone(UTC):
            return text
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text[:40]!r} is no time with its offset from UTC, such as 2026-11-21T12:00:00Z")


Started = Annotated[str, AfterValidator(_require_time)]
"""Time of the first event, with its offset from UTC."""


class StorageChainLink(TolerantModel):
    """A file system or a device; the devices below it follow it, with a ``depth`` one higher."""

    depth: int
    """0 for the file system."""
    kind: str
    """``ext4``, ``LVM volume``, ``partition``, ``disk``."""
    name: str | None = None
    """The kernel's name of the device."""
    label: str | None = None
    """The name that its owner or maker gave it: of a volume, a backing file, a model."""
    sectors: Sectors | None = None
    rotational: bool | None = None
    """Whether the kernel reports the disk as rotational."""

    @property
    def words(self) -> str:
        """Text of this link alone."""
        size = None if self.sectors is None else f"{self.sectors * SECTOR_BYTES / 1e9:,.1f} GB"
        turns = None if self.rotational is None else "rotational" if self.rotational else "not rotational"
        facts = ", ".join(fact for fact in (self.label, size, turns) if fact is not None)
        return " ".join(part for part in (self.kind, self.name, f"({facts})" if facts else None) if part)


def storage_chain_in_words(chain: Sequence[StorageChainLink]) -> str:
    """A chain on one line, ``xfs on LVM volume dm-0 (pg-log, 10.0 GB) on disk sda (500.1 GB)``."""
    if not chain:
        return "not known"
    text = chain[0].words
    for above, link in pairwise(chain):
        text += f" on {link.words}" if link.depth > above.depth else f", and on {link.words}"
    return text


_LOOKED_AT_BYTES = 64 << 10
_OTHER_FIX = "name a folder that tierwise record has written to its end"
_OBSERVE = "tierwise observe asks a server for its waits over SQL, and tierwise record counts both"
_NO_ROLES = "which tells neither roles nor waits"
_DEVICE = "which measures a device, as tierwise device probe does"
_TOOLS = (
    (r"avg-cpu:.*%iowait|^Device:?\s.*(?:r/s|tps)", "an output of iostat", _NO_ROLES),
    (r"^procs -+memory-+|^Linux .*\n\n.*%iowait", "an output of vmstat or sar", _NO_ROLES),
    (r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]", "an output of blkparse", _NO_ROLES),
    (r"AWR Report|WORKLOAD REPOSITORY|STATSPACK", "a report of Oracle", "an engine unknown here"),
    (r'"fio version"|^fio-\d', "an output of fio", _DEVICE),
    (r"^\[global\]|^rw=|ioengine=", "a job file of fio", _DEVICE),
    (r"# Query 1: |# Time: \d|slow query", "a log of slow queries", "which tells no requests of files"),
    (r"^PAR1", "a single table", "while a recording is a folder with about.json"),
)


def require_recording(path: Path) -> None:
    """Refuse a file, a day or an observation in place of a recording; nothing happens if none is there."""
    if Day.is_at(path):
        raise TierwiseError(f"{path}: a day holds several recordings", "name one of its folders")
    if os.path.lexists(path / OBSERVATION_FILE):
        raise TierwiseError(f"{path} is an observation, which profile, predict and advise read", _OTHER_FIX)
    if not path.is_file():
        return
    with open_regular(path, _OTHER_FIX, most_bytes=1 << 62) as file:
        text = file.read(_LOOKED_AT_BYTES).decode("utf-8", "replace")
    for pattern, what, why in _TOOLS:
        if re.search(pattern, text, re.MULTILINE):
            raise TierwiseError(f"{path} is {what}, {why}", f"{_OTHER_FIX}; {_OBSERVE}")
    raise TierwiseError(f"{path} is no folder", f"{_OTHER_FIX}; {_OBSERVE}")


ABOUT_FILE = "about.json"
"""Metadata of a recording; a folder without it is no recording."""
OBSERVATION_FILE = "observation.json"
"""The file of an observation; a folder with it is one."""
TABLES = ("threads", "files", "states", "calls", "blocks")
"""Names of the tables."""
TABLE_FILES = tuple(f"{name}.parquet" for name in TABLES)
"""Their files, in the same order."""
_OWN_FILES = (*TABLE_FILES, ABOUT_FILE, BUFFER_FILE)
_COPY = "copy the recording again from where it was made, or record again"
_FIX = "name a folder that tierwise record has written, with all of its files"
_WHOLE = 0.9
"""Share of the time that bursts cover at least where nothing was left out; that of ``crates/work``."""
_FOREIGN_CPU_SHARE = 0.05
"""Share of the processors used by other programs above which a recording has a warning."""


class RecordedMachine(TolerantModel):
    """The machine of the recorded run."""

    cores: int = Field(ge=0, le=_MOST_CORES)
    core_limit: float | None = Field(default=None, gt=0, le=_MOST_CORES, allow_inf_nan=False)
    """Cores that the server may use, by its affinity and its control groups, if that is fewer."""
    io_limits: list[str] = []
    """Limits of block I/O of the server's control groups, for devices of files: ``60 writes a second``."""
    memory_bytes: Bytes
    processes_bytes: Bytes = 0
    """Memory of the recorded processes, without the page cache; 0 if that was not seen."""
    processor: str
    kernel: str


class Burst(TolerantModel):
    """A stretch of time in which every event was recorded."""

    start_ns: int
    end_ns: int


class MountedDevice(TolerantModel):
    """A mounted block device; ``roles`` is empty if it held no file of the database."""

    name: str
    major: int
    minor: int
    mount: str | None
    roles: list[Role]
    shared: int
    """Partitions with the same number share one physical device."""
    first_sector: Sectors
    sectors: Sectors
    profile: str | None
    """TOML, if the device was an emulated one."""
    path_us: Latency | None = None
    """Latency of the path to an emulated device that its server compensates; ``None`` in older recordings."""
    path_added_us: list[tuple[int, Latency]] = []
    """By how much longer that path is with more requests outstanding, by their number; empty if unknown."""
    write_cache: bool
    chain: list[StorageChainLink] = []
    """The file system and the devices below it; empty in older recordings."""


class EventLosses(TolerantModel):
    """Number of events that were recorded, and of those that the kernel dropped."""

    recorded_events: int
    lost_events: int


_MOST_WIDTH = 1.5
"""Upper over lower end of an interval that tells something; that of ``crates/work``."""


class RecordingCost(TolerantModel):
    """Cost of recording: the rate of work in bursts over the rate between them, with its 95 % interval.

    ``cpu_ratio`` is the same of the processor time for a context switch; its low end is 0 if not known.
    """

    rate_ratio: float
    rate_ratio_low: float
    rate_ratio_high: float
    cpu_ratio: float = 1.0
    cpu_ratio_low: float = 0.0
    cpu_ratio_high: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the interval of the rates' ratio is narrow enough to correct rates by it."""
        return self.rate_ratio_low > 0 and self.rate_ratio_high <= _MOST_WIDTH * self.rate_ratio_low

    @property
    def knows_cpu(self) -> bool:
        """Whether the ratio of processor times was measured."""
        return self.cpu_ratio_low > 0


class RecordingCheck(TolerantModel):
    """One check that the recording made of itself."""

    name: str
    passed: bool
    detail: str


class RecordingMetadata(TolerantModel):
    """Metadata of a recording: ``about.json``."""

    version: int
    started_at: Started
    tierwise: str
    engine: str
    engine_version: str | None
    settings: dict[str, str]
    machine: RecordedMachine
    duration_s: float = Field(ge=0, le=1e8, allow_inf_nan=False)
    bursts: list[Burst]
    devices: list[MountedDevice]
    losses: EventLosses
    cost: RecordingCost | None
    transactions: int | None
    counters: dict[str, int] = {}
    """Increase of the engine's own counters; empty if they were not read."""
    data_directory_bytes: Bytes | None = None
    """Size of all files of the engine's data directory, if known."""
    role_bytes: dict[Role, Bytes] = {}
    """The same by role of the files, also of those elsewhere; empty in older recordings."""
    replication_slots: int | None = Field(default=None, ge=0)
    """Number of PostgreSQL's replication slots; null for other engines, and in older recordings."""
    relations: list[Relation] = []
    """Tables and indexes by their files; empty if the server was not asked, and in older recordings."""
    clients: list[ClientProgram] = []
    """Programs that held the sessions; empty if there are none, and in older recordings."""
    foreign_cpu_share: float
    foreign_programs: list[ForeignProgram] = []
    """Programs that used most of that time, the busiest first; empty in older recordings."""
    stolen_cpu_share: float = 0.0
    """Processor time that the hypervisor took during bursts; 0 in older recordings."""
    checks: list[RecordingCheck]
    warnings: list[str]

    @property
    def bursts_s(self) -> float:
        """Time in bursts."""
        return sum(burst.end_ns - burst.start_ns for burst in self.bursts) / 1e9

    @property
    def bursts_span_s(self) -> float:
        """Time from the start of the first burst to the end of the last."""
        ends = [time_ns for burst in self.bursts for time_ns in (burst.start_ns, burst.end_ns)]
        return (max(ends) - min(ends)) / 1e9 if ends else 0.0

    @property
    def is_whole(self) -> bool:
        """Whether bursts cover all of the time, as with a duty of 1, rather than a sample of it."""
        return self.bursts_s >= _WHOLE * self.duration_s


@dataclass(frozen=True)
class Recording:
    """A recording on disk."""

    path: Path
    about: RecordingMetadata

    @classmethod
    def open(cls, path: Path, *, whole: bool = False) -> Recording:
        """Open a recording; if ``whole``, check every table too, in seconds for ten million rows."""
        require_recording(path)
        about = _core.read_recording(path, whole)
        return cls(path, parse_as_model(RecordingMetadata, about, str(path / ABOUT_FILE), _COPY))

    @property
    def warnings(self) -> list[str]:
        """Sentences that every result from this recording repeats."""
        about = self.about
        pooled = pooler_warning(about.clients)
        texts = [*([] if pooled is None else [pooled]), *about.warnings]
        if about.losses.lost_events:
            lost, taken = about.losses.lost_events, about.losses.recorded_events
            share = lost / (lost + taken)
            texts.append(
                f"the kernel dropped {lost} of {lost + taken} events ({percent_text(share)}) while recording"
            )
        if about.foreign_cpu_share > _FOREIGN_CPU_SHARE:
            share = about.foreign_cpu_share
            texts.append(f"other programs used {percent_text(share)} of the processors while recording")
        texts += [f"{check.name}: {check.detail}" for check in about.checks if not check.passed]
        return list(dict.fromkeys(texts))

    @property
    def size_bytes(self) -> int:
        """All its files."""
        return sum(file.lstat().st_size for file in self.path.iterdir())

    def break_down(self) -> Breakdown:
        """Say where its time went."""
        return break_down(self.path)

    def relations(self, names: Path | None = None) -> Relations:
        """Its tables and indexes, named by a CSV file if given, with what their files were asked for."""
        named = self.about.relations if names is None else read_relation_names(names)
        files = break_down(self.path, most_files=sys.maxsize).files
        return relations_of(self.about.engine, files, named, self.buffer())

    def buffer(self) -> BufferContent | None:
        """What the engine's buffer held at the end; ``None`` if that was not asked for."""
        return read_buffer(self.path) if os.path.lexists(self.path / BUFFER_FILE) else None

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in which each table of the recording is a view."""
        connection = duckdb.connect()
        for table in TABLES:
            file = self.path / f"{table}.parquet"
            open_regular(file, _FIX, most_bytes=sys.maxsize, in_folder=True).close()
            columns = connection.read_parquet(glob.escape(str(file)))
            odd = (
                name for name, kind in zip(columns.columns, columns.types, strict=True) if _is_odd(kind.id)
            )
            if name := next(odd, None):
                raise TierwiseError(f"{file}: column {printable(name)[:40]} is of times or decimals", _FIX)
            columns.create_view(table)
        return connection

    @contextmanager
    def tables(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection of :meth:`connect`, closed on exit; a table that DuckDB cannot read is damaged."""
        connection = None
        try:
            connection = self.connect()
            yield connection
        except duckdb.Error as error:
            raise TierwiseError(f"{self.path}: {str(error).partition(chr(10))[0]}", _FIX) from error
        finally:
            if connection is not None:
                connection.close()


def _is_odd(kind: str) -> bool:
    """Whether the core reads a column's values as whole numbers, and DuckDB as something else."""
    return kind.startswith(("date", "time", "interval", "decimal"))


def redact_recording(path: Path, out: Path) -> None:
    """Write a copy of a recording for others, without paths, names of devices and names of programs.

    Predictions from it are the same. docs/concepts/privacy.md describes what remains in it.
    """
    require_recording(path)
    with new_recording_folder(out):
        _core.redact_recording(path, out)


def make_recording_folder(out: Path) -> None:
    """Make the folder of a new recording, which only its owner may enter; an existing one must be empty.

    Refused is a folder in a recording, or one that another user could replace.
    """
    for folder in resolved_path(out).parents:
        if any(os.path.lexists(folder / name) for name in (ABOUT_FILE, OBSERVATION_FILE)):
            raise TierwiseError(f"{out} lies in {folder}, which is a recording", "name a folder beside it")
    with os_errors(out, "name a directory that can be made"):
        make_own_folder(out, empty=True)


@contextmanager
def claimed_folder(out: Path) -> Iterator[None]:
    """Make a folder as :func:`make_recording_folder`; refuse one in which another process records."""
    make_recording_folder(out)
    busy = TierwiseError(f"{out}: another tierwise writes a recording there", "name a new directory")
    with claim_folder_lock(out, busy):
        make_recording_folder(out)  # another process may have finished its recording there meanwhile
        yield


@contextmanager
def new_recording_folder(out: Path) -> Iterator[None]:
    """Make a folder as :func:`claimed_folder`; what fails within leaves none."""
    with claimed_folder(out):
        try:
            yield
        except BaseException:
            discard_recording(out)
            raise


def discard_recording(folder: Path) -> None:
    """Delete what was written of a recording or an observation that was not finished.

    What others have put into the folder meanwhile stays, and so does the folder then.
    """
    if folder.is_symlink():
        return
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if _is_own(path) or path.name == OBSERVATION_FILE:
                path.unlink()
        folder.rmdir()


def remove_recording(folder: Path) -> None:
    """Delete a recording, or what a recorder that was killed has left of one.

    A link is refused, and so is a folder that holds other data than a recording's.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise TierwiseError(f"{folder} is no recording", "name another directory")
    for path in sorted(folder.iterdir()):
        if not _is_own(path):
            what = "is no recording's file, and the folder would be deleted"
            raise TierwiseError(f"{path} {what}", "name another directory, or move that away")
    shutil.rmtree(folder)


def _is_own(path: Path) -> bool:
    named = path.name.removesuffix(".part") in _OWN_FILES
    return named and path.is_file() and not path.is_symlink()


@dataclass(frozen=True)
class Day:
    """The recordings of a folder that can be opened, the earliest first; a warning for each that cannot."""

    path: Path
    recordings: list[Recording]
    warnings: list[str]

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Whether a folder holds recordings and is none itself."""
        return not os.path.lexists(path / ABOUT_FILE) and any(path.glob(f"*/{ABOUT_FILE}"))

    @classmethod
    def open(cls, path: Path) -> Day:
        """Open each recording of a folder; one without ``about.json`` was never finished and is left out."""
        opened, errors = open_recordings_of_folder(path, _of_day)
        if not opened:
            raise errors[0] if errors else TierwiseError(f"{path} holds no recording", "name another folder")
        opened.sort(key=lambda pair: pair[0])
        return cls(
            path, [recording for _, recording in opened], [f"left out: {error.message}" for error in errors]
        )


OpenedT = TypeVar("OpenedT")


def open_recordings_of_folder(
    path: Path, opener: Callable[[Path], OpenedT]
) -> tuple[list[OpenedT], list[TierwiseError]]:
    """Open each recording of a folder, by its name; and why others cannot be opened."""
    opened: list[OpenedT] = []
    errors: list[TierwiseError] = []
    for file in sorted(path.glob(f"*/{ABOUT_FILE}")):
        try:
            opened.append(opener(file.parent))
        except TierwiseError as error:
            errors.append(error)
    return opened, errors


def _of_day(folder: Path) -> tuple[datetime, Recording]:
    if folder.is_symlink():
        raise TierwiseError(f"{folder} is a link", "name the folder itself")
    recording = Recording.open(folder)
    return datetime.fromisoformat(recording.about.started_at), recording
