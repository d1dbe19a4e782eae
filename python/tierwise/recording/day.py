"""A day: a folder of short recordings of one database, taken one after the other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.recording.recording import ABOUT_FILE, Recording


@dataclass(frozen=True)
class Day:
    """The recordings of a folder, the earliest first.

    Attributes:
        path: the folder.
        recordings: those that can be opened.
        warnings: a sentence for each that cannot.
    """

    path: Path
    recordings: list[Recording]
    warnings: list[str]

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Whether a folder holds recordings and is none itself."""
        return not os.path.lexists(path / ABOUT_FILE) and any(path.glob(f"*/{ABOUT_FILE}"))

    @classmethod
    def open(cls, path: Path) -> Day:
        """Open each recording of a folder; one without ``about.json`` was never finished and is left out.

        Raises:
            TierwiseError: if none can be opened; the first one's reason.
        """
        opened: list[tuple[datetime, Recording]] = []
        errors: list[TierwiseError] = []
        for file in sorted(path.glob(f"*/{ABOUT_FILE}")):
            try:
                if file.parent.is_symlink():
                    raise TierwiseError(f"{file.parent} is a link", "name the folder itself")
                one = Recording.open(file.parent)
                opened.append((_started(one, file), one))
            except TierwiseError as error:
                errors.append(error)
        if not opened:
            raise errors[0] if errors else TierwiseError(f"{path} holds no recording", "name another folder")
        opened.sort(key=lambda one: one[0])
        return cls(path, [one for _, one in opened], [f"left out: {error.message}" for error in errors])


def _started(recording: Recording, file: Path) -> datetime:
    """Start of a recording in UTC."""
    try:
        return datetime.fromisoformat(recording.about.started_at).astimezone(UTC)
    except (ValueError, OverflowError):
        raise TierwiseError(f"{file}: started_at is no time", "record again") from None
