"""A cold start: how caches were emptied while the server was down, and which files stayed in them."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

from typing import Literal

from tierwise.model.roles import Role
from tierwise.results.measurements import Record


class WarmFile(Record):
    """A file whose pages stayed in the page cache: locked, dirty or mapped by another process."""

    role: Role
    file: str
    """Path within the role's directory."""
    resident_bytes: int
    """Of the file, in the page cache."""


class ColdStart(Record):
    """How caches were emptied before the server started."""

    dropped: Literal["own files", "whole machine"]
    """``whole machine`` if the user gave --drop-caches."""
    remounted: list[Role] = []
    """Roles on emulated disks that were unmounted and mounted again: no page of them stayed."""
    not_remounted: dict[Role, str] = {}
    """Roles on emulated disks that were in use, with the reason: only the pages of files were dropped."""
    resident_bytes: int = 0
    """Of all files, in the page cache after it."""
    warm: list[WarmFile] = []
    """Files that stayed warm, the largest first, at most five."""

    @property
    def warnings(self) -> list[str]:
        """What was not as cold as it should be, one sentence part each."""
        busy = [
            f"the disk of {role} was not unmounted ({reason}): its inodes and directories stayed in memory"
            for role, reason in self.not_remounted.items()
        ]
        stayed = [
            f"{one.resident_bytes >> 10:,} KiB of {one.file} ({one.role}) stayed in the page cache"
            for one in self.warm
        ]
        return [*busy, *stayed]
