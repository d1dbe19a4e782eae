"""Checksums of the recordings of a fleet, so that a run knows which it has answered before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tierwise.cluster.remote import fingerprint
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import Threads

if TYPE_CHECKING:
    from tierwise.fleet.options import OptionsTask

_AT_A_TIME = 16
"""Requests to a store that are under way at once."""


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
