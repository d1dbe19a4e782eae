"""The databases of a fleet: their recordings, found by path, glob or URI, and what their owner says of them.

The owner's file of weights is TOML, with a table for each database that differs from the rest::

    [databases.shop]
    importance = 3
    p99 = "5ms"

    [databases.archive]
    frozen = true
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from tierwise.advise import Goal
from tierwise.cluster import remote
from tierwise.cluster.remote import recording_fingerprint
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import ThreadExecutor
from tierwise.model.input_files import STRICT, parse_as_model, parse_toml, read_text
from tierwise.model.names import did_you_mean, printable
from tierwise.model.units import parse_duration_s
from tierwise.results.measurements import StrictModel

if TYPE_CHECKING:
    from tierwise.fleet.database_options import DatabaseOptionsTask

_AT_A_TIME = 16
"""Requests to a store that are under way at once."""


def tasks_with_checksums(tasks: Sequence[DatabaseOptionsTask]) -> list[DatabaseOptionsTask]:
    """The tasks with the digest of each recording; without one where it cannot be read."""
    sums = ThreadExecutor(_AT_A_TIME).run(_checksum, [task.recording.uri for task in tasks])
    checksums = dict(sums)
    return [
        replace(task, checksum=checksum if isinstance(checksum := checksums[number], str) else None)
        for number, task in enumerate(tasks)
    ]


def _checksum(uri: str) -> str | None:
    try:
        return recording_fingerprint(uri)
    except HostError:
        raise
    except TierwiseError:
        return None  # the task itself says why


class SkippedRecording(StrictModel):
    """A recording, or a pattern of recordings, that the advice does without."""

    name: str
    """Name of the database, or the pattern."""
    uri: str
    """Path or URI."""
    problem: str
    """Why it was left out."""
    fix: str
    """What to do about it."""


@dataclass(frozen=True)
class RecordingLocation:
    """Where a recording is.

    Attributes:
        name: of its database: the name of its folder, or the whole path or URI if two folders share a name.
        uri: absolute path or URI of the folder.
    """

    name: str
    uri: str


def find_recordings(patterns: Sequence[str]) -> tuple[list[RecordingLocation], list[SkippedRecording]]:
    """Find the recordings that patterns name, each once, in their order; those of a glob are sorted.

    A glob takes folders only. A path without wildcards is taken as it is.

    Args:
        patterns: paths, globs or URIs, such as ``recordings/*`` or ``s3://bucket/recordings/*``.

    Returns:
        The recordings, and each pattern that gave none.

    Raises:
        HostError: a URI without the package that it needs.
    """
    found: dict[str, str] = {}
    left_out: list[SkippedRecording] = []
    for pattern in map(remote.path_of_local_uri, patterns):
        try:
            matches = remote.folders_matching_uri(pattern) if remote.is_uri(pattern) else _local(pattern)
            if not matches:
                raise TierwiseError(f"{pattern}: no folder of that name", "name the folders of recordings")
            for uri in (match.rstrip("/") or match for match in matches):
                found.setdefault(_location_key(uri), uri)
        except TierwiseError as error:
            if error.exit_status != TierwiseError.exit_status:
                raise
            shown = printable(remote.uri_without_credentials(pattern))
            left_out.append(
                SkippedRecording(name=shown, uri=shown, problem=printable(error.message), fix=error.fix)
            )
    uris = list(found.values())
    tails = Counter(map(_tail, uris))
    names = {uri: _tail(uri) if tails[_tail(uri)] == 1 else uri for uri in uris}
    return [RecordingLocation(printable(name), _absolute_path(uri)) for uri, name in names.items()], left_out


def _local(pattern: str) -> list[str]:
    if Path(pattern).exists() or not glob.has_magic(pattern):
        return [pattern]
    return sorted(name for name in glob.glob(pattern) if Path(name).is_dir())  # noqa: PTH207  (any path)


def _location_key(uri: str) -> str:
    """Equal for all spellings of a path, and for links to it: a database counts once."""
    return uri if remote.is_uri(uri) else str(Path(uri).resolve())


def _absolute_path(uri: str) -> str:
    """A path that does not depend on the working directory of whoever opens it."""
    return uri if remote.is_uri(uri) else str(Path(uri).absolute())


def _tail(uri: str) -> str:
    tail = uri.rpartition("/")[2]
    if tail in (".", "..") and not remote.is_uri(uri):
        return Path(uri).resolve().name or uri
    return tail or uri


_WEIGHTS_FIX = "mend that field; see docs/how-to/fleet.md"


class DatabaseWeight(BaseModel):
    """What holds for one database."""

    model_config = STRICT

    importance: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Factor of its gain."""
    p99: str | None = None
    """99th percentile of the latency that it must have, such as `5ms`."""
    frozen: bool = False
    """Whether its files stay where they are."""

    @field_validator("p99", mode="before")
    @classmethod
    def _has_its_unit(cls, p99: object) -> object:
        """Refuse a number alone, which would be one of seconds."""
        if isinstance(p99, (int, float)) or (isinstance(p99, str) and p99.strip()[-1:].isdigit()):
            raise ValueError(f"{p99} has no unit: write for example 5ms")
        return p99

    @model_validator(mode="after")
    def _moves_for_its_goal(self) -> Self:
        if self.frozen and self.p99 is not None:
            raise ValueError("a frozen database moves for no p99: give one of frozen and p99")
        return self

    @property
    def goal(self) -> Goal | None:
        """The p99 as a goal."""
        return None if self.p99 is None else Goal(what="p99", bound=1e6 * parse_duration_s(self.p99, "p99"))


class WeightsFile(BaseModel):
    """The fields of a file of weights."""

    model_config = STRICT

    databases: dict[str, DatabaseWeight] = {}
    """Name of a database -> what holds for it; one without a table has importance 1."""


@dataclass(frozen=True)
class FleetWeights:
    """The weights of a fleet.

    Attributes:
        of_databases: name -> weight, of those that differ from the rest.
        file: where they are from.
    """

    of_databases: Mapping[str, DatabaseWeight] = field(default_factory=dict)
    file: Path | None = None

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a file."""
        raw = parse_toml(read_text(file, "give a readable TOML file"), str(file))
        databases = parse_as_model(WeightsFile, raw, str(file), _WEIGHTS_FIX).databases
        for name, weight in databases.items():
            if weight.p99 is not None:
                parse_duration_s(weight.p99, f"{file}: databases.{name}.p99")
        return cls(databases, file)

    def of(self, name: str) -> DatabaseWeight:
        """The weight of a database."""
        return self.of_databases.get(name, DatabaseWeight())

    def require_known(self, names: Iterable[str]) -> None:
        """Check that each database of the file is in the fleet."""
        known = list(names)
        for name in self.of_databases:
            if name not in known:
                fix = did_you_mean(name, known, "write the name of a recording's folder")
                raise TierwiseError(f"{self.file}: databases.{name}: no such database in the fleet", fix)
