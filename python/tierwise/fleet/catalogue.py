"""The recordings of a fleet: found by path, glob or URI, each with a name and a checksum."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tierwise.cluster import remote
from tierwise.cluster.remote import fingerprint
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import Threads
from tierwise.model.names import printable
from tierwise.results.measurements import Record

if TYPE_CHECKING:
    from tierwise.fleet.options import OptionsTask

_AT_A_TIME = 16
"""Requests to a store that are under way at once."""


def with_checksums(tasks: Sequence[OptionsTask]) -> list[OptionsTask]:
    """The tasks with the digest of each recording; without one where it cannot be read."""
    sums = Threads(_AT_A_TIME).run(_checksum, [task.recording.uri for task in tasks])
    checksums = dict(sums)
    return [
        replace(task, checksum=checksum if isinstance(checksum := checksums[number], str) else None)
        for number, task in enumerate(tasks)
    ]


def _checksum(uri: str) -> str | None:
    try:
        return fingerprint(uri)
    except HostError:
        raise
    except TierwiseError:
        return None  # the task itself says why


class LeftOutRecording(Record):
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
class RecordingAt:
    """Where a recording is.

    Attributes:
        name: of its database: the name of its folder, or the whole path or URI if two folders share a name.
        uri: absolute path or URI of the folder.
    """

    name: str
    uri: str


def catalogue(patterns: Sequence[str]) -> tuple[list[RecordingAt], list[LeftOutRecording]]:
    """Find the recordings that patterns name, each once, in their order; those of a glob are sorted.

    A glob takes folders only. A path without wildcards is taken as it is.

    Args:
        patterns: paths, globs or URIs, such as ``recordings/*`` or ``s3://bucket/recordings/*``.

    Returns:
        The recordings, and each pattern that gave none.

    Raises:
        HostError: a URI without the package that it needs.
    """
    uris: dict[str, None] = {}
    left_out: list[LeftOutRecording] = []
    for pattern in map(remote.local_path, patterns):
        try:
            matches = remote.folders(pattern) if remote.is_uri(pattern) else _local(pattern)
            if not matches:
                raise TierwiseError(f"{pattern}: no folder of that name", "name the folders of recordings")
            uris |= dict.fromkeys(match.rstrip("/") or match for match in matches)
        except TierwiseError as error:
            if error.exit_status != TierwiseError.exit_status:
                raise
            shown = printable(remote.shown(pattern))
            left_out.append(
                LeftOutRecording(name=shown, uri=shown, problem=printable(error.message), fix=error.fix)
            )
    tails = Counter(_tail(uri) for uri in uris)
    names = {uri: _tail(uri) if tails[_tail(uri)] == 1 else uri for uri in uris}
    return [RecordingAt(printable(name), _everywhere(uri)) for uri, name in names.items()], left_out


def _local(pattern: str) -> list[str]:
    if Path(pattern).exists() or not glob.has_magic(pattern):
        return [pattern]
    return sorted(name for name in glob.glob(pattern) if Path(name).is_dir())  # noqa: PTH207  (any path)


def _everywhere(uri: str) -> str:
    """A path that does not depend on the working directory of whoever opens it."""
    return uri if remote.is_uri(uri) else str(Path(uri).absolute())


def _tail(uri: str) -> str:
    return uri.rpartition("/")[2] or uri
