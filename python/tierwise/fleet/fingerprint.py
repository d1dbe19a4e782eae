"""The identity of a recording's files, so that a run knows whether it has seen them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tierwise.cluster import remote
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import Threads

if TYPE_CHECKING:
    from tierwise.fleet.options import OptionsTask

_AT_A_TIME = 16
"""Requests to a store that are under way at once."""


def fingerprint(uri: str) -> str:
    """Digest of a recording's files: of their contents, or of what a store says of them.

    Raises:
        HostError: a package for this kind of URI is not installed.
        TierwiseError: the files cannot be listed or read.
    """
    said: object = remote.versions(uri) if remote.is_uri(uri) else dict(_contents(Path(uri)))
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def with_checksums(tasks: Sequence[OptionsTask]) -> list[OptionsTask]:
    """The tasks with the digest of each recording; without one where it cannot be read."""
    found = Threads(_AT_A_TIME).run(_checksum, [task.recording.uri for task in tasks])
    checksums = dict(found)
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


def _contents(folder: Path) -> Iterator[tuple[str, str]]:
    for name in remote.FILES:
        try:
            if (folder / name).is_file():
                with (folder / name).open("rb") as file:
                    yield name, hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise TierwiseError(
                f"{folder / name}: {error.strerror}", "check your rights to read it"
            ) from error
