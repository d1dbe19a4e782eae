"""Where the time of a recording went: by class of threads, by what it ran on or waited for, and by role.

Parts are totals of waits.
:mod:`tierwise.predict.savings` computes the savings of a faster device.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from tierwise import _core
from tierwise.model.placement import Role
from tierwise.results.measurements import Record

Part = Literal[
    "cpu", "runnable", "log_device", "log_queue", "read", "write", "lock", "client", "sleep", "other"
]
MOST_FILES = 40
ThreadClass = Literal["session", "client", "log_writer", "background", "kernel", "other"]


class Slice(Record):
    """Time that one class of threads spent on one part."""

    part: Part
    role: Role | None
    """Role of the file, if the part is for a file that has one."""
    time_s: float
    """Summed over threads."""
    share: float
    """Of the class's time."""


class ClassTime(Record):
    """The time of one class of threads."""

    name: ThreadClass = Field(alias="class")
    threads: int
    lived_s: float
    """Lifetime of the threads within bursts, summed."""
    slices: list[Slice]

    @property
    def parts(self) -> dict[Part, float]:
        """Part -> share of the class's time, all roles together; they sum to 1."""
        shares: dict[Part, float] = {}
        for one in self.slices:
            shares[one.part] = shares.get(one.part, 0.0) + one.share
        return shares


class Requests(Record):
    """Requests to devices."""

    reads: int
    writes: int
    flushes: int
    read_bytes: int
    written_bytes: int


class RoleTraffic(Requests):
    """Requests of one role to its devices."""

    role: Role | None
    """``None`` stands for requests of no file: a file system's journal, and other programs."""
    devices: list[str]
    size_bytes: int
    syncs: int
    """Syncs that threads requested."""
    busy_s: float
    """Time in which at least one request was under way."""
    waited_s: float
    """Time that threads waited for its files in calls, summed."""


class FileTraffic(Requests):
    """Requests of one file to its device."""

    file: int
    """Its number in the recording's table of files."""
    path: str
    role: Role | None
    size_bytes: int
    waited_s: float
    session_waited_s: float
    """The part of that which client sessions waited."""
    device_s: float
    """Time that its requests spent at the device, summed."""


class Breakdown(Record):
    """Where the time of a recording went."""

    span_s: float
    """Time in bursts."""
    bursts: int
    cores: int
    busy_share: float
    """Share of all cores' time that recorded threads used."""
    classes: list[ClassTime]
    roles: list[RoleTraffic]
    files: list[FileTraffic]
    """The files with the most wait time."""
    sum_error: float
    """Largest difference between any thread's parts and its lifetime, as a share of the lifetime."""


def break_down(path: Path, most_files: int = MOST_FILES) -> Breakdown:
    """Say where the time of a recording went, with at most ``most_files`` files.

    Raises:
        TierwiseError: naming the file, if it is no recording, newer than this program, or damaged.
    """
    return Breakdown.model_validate_json(_core.profile_recording(path, most_files))
